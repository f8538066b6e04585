// What pages do better with scripts than without; none of it is needed.
for (const button of document.querySelectorAll("[data-copies]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copies);
    await navigator.clipboard.writeText(field.value);
    button.firstChild.data = "Copied";
    setTimeout(() => { button.firstChild.data = "Copy"; }, 2000);
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
// fields that only one choice needs
for (const part of document.querySelectorAll("[data-only-for]")) {
  const choice = part.closest("form").elements[part.dataset.onlyFor];
  const show = () => { part.hidden = choice.value !== part.dataset.value; };
  choice.addEventListener("change", show);
  show();
}
// a part of a form that follows what is typed: the server makes it of the form so far, as soon as typing stops
for (const part of document.querySelectorAll("[data-follows]")) {
  const form = part.closest("form");
  let asked = 0, timer;
  const follow = async () => {
    const number = ++asked;
    const answer = await fetch(part.dataset.follows, { method: "POST", body: new FormData(form) }).catch(() => null);
    const text = answer?.ok && !answer.redirected ? await answer.text() : null;
    if (text !== null && number === asked) part.innerHTML = text;
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(follow, 250);
  });
}
// buttons that do what scripts do by themselves
for (const button of document.querySelectorAll("[data-needless]")) button.hidden = true;
