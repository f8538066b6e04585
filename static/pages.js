// What pages do better with scripts than without; none of it is needed.
for (const button of document.querySelectorAll("[data-copies]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copies);
    await navigator.clipboard.writeText(field.value);
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 2000);
  });
}
// after a refused form the first message gets the focus, so that it is read out and seen
document.querySelector("[role=alert], [aria-invalid=true]")?.focus();
// questions are asked in a dialog instead of on a page of their own
for (const opener of document.querySelectorAll("[data-opens]")) {
  opener.setAttribute("role", "button");
  opener.addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById(opener.dataset.opens).showModal();
  });
}
for (const closer of document.querySelectorAll("[data-closes]")) {
  closer.addEventListener("click", () => document.getElementById(closer.dataset.closes).close());
}
// choosing is sending; the button beside it is for those without scripts
for (const select of document.querySelectorAll("select[data-sends]")) {
  const button = select.form.querySelector("button");
  button.hidden = true;
  select.addEventListener("change", () => select.form.requestSubmit());
}
