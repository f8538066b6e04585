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
