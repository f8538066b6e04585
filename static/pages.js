// What pages do better with scripts than without; none of it is needed.
for (const button of document.querySelectorAll("[data-copies], [data-copies-from]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const { copies, copiesFrom } = button.dataset, field = copies && document.getElementById(copies);
    const text = field ? field.value ?? field.textContent : await (await fetch(copiesFrom)).text();
    await navigator.clipboard.writeText(text);
    button.firstChild.data = "Copied";
    setTimeout(() => { button.firstChild.data = "Copy"; }, 2000);
  });
}
// after a refused form the first message gets the focus, so that it is read out and seen
const findFault = (root) => root.querySelector("[role=alert], [aria-invalid=true]")?.focus();
findFault(document);
// "#L3-5" means the lines 3 to 5 of a file; what means a single line is the name of that line
const markLines = () => {
  const bounds = (/^#L(\d+)-(\d+)$/.exec(location.hash) ?? []).slice(1).map(Number);
  const first = Math.min(...bounds), last = Math.max(...bounds);
  document.querySelectorAll(".source .line").forEach((line, before) => {
    line.classList.toggle("meant", first <= before + 1 && before < last);
  });
  document.querySelector(".source .meant")?.scrollIntoView();
};
addEventListener("hashchange", markLines);
markLines();
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
// a way out that would lose what was changed asks first
for (const link of document.querySelectorAll("[data-asks-first]")) {
  const dialog = document.getElementById(link.dataset.asksFirst);
  if (!dialog) continue;
  const form = document.getElementById(dialog.dataset.about);
  const read = () => new URLSearchParams(new FormData(form)).toString();
  const before = read();
  link.addEventListener("click", (event) => {
    if (read() === before && !form.querySelector("[aria-invalid=true]")) return;
    event.preventDefault();
    dialog.showModal();
  });
}
// choosing is sending; the button beside it is for those without scripts
for (const select of document.querySelectorAll("select[data-sends]")) {
  const button = select.form.querySelector("button");
  button.hidden = true;
  select.addEventListener("change", () => select.form.requestSubmit());
}
// fields that only one choice needs
const followChoices = (root) => {
  for (const part of root.querySelectorAll("[data-only-for], [data-not-for]")) {
    const form = part.closest("form"), { onlyFor, notFor, value } = part.dataset;
    const show = () => { part.hidden = (form.elements[onlyFor ?? notFor].value === value) === Boolean(notFor); };
    form.addEventListener("change", show);
    show();
  }
};
followChoices(document);
// parts of a form that follow what is typed: the server makes them of the form so far, as soon as typing stops
for (const part of document.querySelectorAll("[data-follows]")) {
  const form = part.closest("form");
  let asked = 0, timer;
  const follow = async () => {
    const number = ++asked;
    const answer = await fetch(part.dataset.follows, { method: "POST", body: new FormData(form) }).catch(() => null);
    const text = answer?.ok && !answer.redirected ? await answer.text() : null;
    if (text === null || number !== asked) return;
    for (const fresh of new DOMParser().parseFromString(text, "text/html").body.children) {
      const place = document.getElementById(fresh.id);
      if (place && place.innerHTML !== fresh.innerHTML) place.innerHTML = fresh.innerHTML;
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(follow, 250);
  });
}
// a choice among many is typed: a text field that suggests the options takes the place of the list
for (const select of document.querySelectorAll("select[data-typed]")) {
  const field = document.createElement("input"), list = document.createElement("datalist"), fault = document.createElement("p");
  const options = [...select.options];
  list.id = `${select.id}-options`;
  list.append(...options.map((option) => new Option(option.text)));
  field.id = `${select.id}-typed`;
  field.setAttribute("list", list.id);
  field.autocomplete = "off";
  field.placeholder = `${options[0].text}, type to search`;
  for (const name of ["aria-describedby", "aria-invalid"]) {
    if (select.hasAttribute(name)) field.setAttribute(name, select.getAttribute(name));
  }
  const show = () => { field.value = select.value ? select.selectedOptions[0].text : ""; };
  const pick = (option) => { select.value = option ? option.value : ""; };
  const isLike = (option, text) => option.text.toLowerCase().includes(text);
  const typed = () => field.value.trim().toLowerCase();
  const findExact = () => options.find((option) => option.text.toLowerCase() === typed());
  field.addEventListener("input", () => pick(findExact()));
  field.addEventListener("change", () => {
    const text = typed(), near = text ? options.filter((option) => isLike(option, text)) : [];
    const named = near.filter((option) => `/${option.text.toLowerCase()}`.includes(`/${text}: `));
    const found = findExact() ?? [named, near].find((ones) => ones.length === 1)?.[0];
    pick(found);
    if (found) show();
    fault.textContent = found || !text ? "" : `${near.length ? "Several keys contain" : "No key contains"} this. Choose one from the list.`;
    field.setAttribute("aria-invalid", String(Boolean(fault.textContent)));
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  field.addEventListener("focus", () => field.select());
  fault.className = "wrong";
  fault.setAttribute("role", "status");
  show();
  select.hidden = true;
  document.querySelector(`label[for="${select.id}"]`).htmlFor = field.id;
  select.after(field, list, fault);
}
// labels are picked one by one: each becomes a chip, and the field that is sent has their titles with commas between
for (const field of document.querySelectorAll("input[data-picks]")) {
  const options = document.getElementById(field.dataset.picks), typed = field.cloneNode(), chips = document.createElement("span");
  const read = (text) => text.split(",").map((title) => title.trim()).filter(Boolean);
  const find = (title) => [...options.options].find((option) => option.value.toLowerCase() === title.toLowerCase());
  const write = (titles) => {
    field.value = [...new Set(titles)].join(", ");
    chips.replaceChildren(...read(field.value).map(makeChip));
  };
  const makeChip = (title) => {
    const chip = document.createElement("button"), dot = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const option = find(title);
    dot.setAttribute("viewBox", "0 0 8 8");
    dot.setAttribute("aria-hidden", "true");
    dot.innerHTML = '<circle cx="4" cy="4" r="4"/>';
    dot.firstChild.setAttribute("fill", option?.dataset.color ?? "#8c8c8c");
    chip.type = "button";
    chip.className = "label";
    chip.setAttribute("aria-label", `Remove ${title}`);
    chip.append(dot, option || !options.hasAttribute("data-complete") ? title : `${title} (new)`, " ×");
    chip.addEventListener("click", () => {
      write(read(field.value).filter((other) => other !== title));
      typed.focus();
    });
    return chip;
  };
  const pick = () => {
    write([...read(field.value), ...read(typed.value).map((title) => find(title)?.value ?? title)]);
    typed.value = "";
  };
  typed.removeAttribute("name");
  typed.value = "";
  typed.id = `${field.id}-typed`;
  document.querySelector(`label[for="${field.id}"]`).htmlFor = typed.id;
  chips.className = "picked";
  field.type = "hidden";
  field.after(chips, typed);
  write(read(field.value));
  typed.addEventListener("input", (event) => {
    if (typed.value.includes(",") || ((event.inputType ?? "insertReplacementText") === "insertReplacementText" && find(typed.value))) pick();
  });
  field.form.addEventListener("submit", pick); // not when the field is left: a chip would move the button that is being pressed
  typed.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && typed.value.trim()) {
      event.preventDefault();
      pick();
    } else if (event.key === "Backspace" && !typed.value) write(read(field.value).slice(0, -1));
  });
}
// people are suggested while a name is typed; without scripts the field takes a username
for (const part of document.querySelectorAll("[data-suggests]")) {
  const field = part.querySelector("input"), list = document.createElement("datalist");
  let asked = 0, timer;
  list.id = `${field.id}-suggestions`;
  field.setAttribute("list", list.id);
  part.append(list);
  const suggest = async () => {
    const number = ++asked;
    const answer = await fetch(`${part.dataset.suggests}?search=${encodeURIComponent(field.value)}`).catch(() => null);
    const people = answer?.ok && !answer.redirected ? await answer.json() : [];
    if (number === asked) list.replaceChildren(...people.map(({ username, name }) => new Option(name, username)));
  };
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(suggest, 200);
  });
}
// an address of a list names only the filters that are set
for (const form of document.querySelectorAll("form[role=search]")) {
  form.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
  });
}
// buttons that do what scripts do by themselves
for (const button of document.querySelectorAll("[data-needless]")) button.hidden = true;
// large files: while one is sent, the form shows how much of it has been
const showUploads = (root) => {
  for (const form of root.querySelectorAll("form[data-uploads]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      upload(form);
    });
  }
};
const upload = (form) => {
  const part = form.querySelector("[data-upload]"), bar = part.querySelector("progress");
  const say = (text) => { part.querySelector("[role=status]").textContent = text; };
  const count = (text) => { part.querySelector("span").textContent = text; };
  const buttons = form.querySelectorAll("button:not([data-upload] *)"), fields = new FormData(form);
  const request = new XMLHttpRequest();
  const end = (text) => {
    say(text);
    bar.parentNode.hidden = part.querySelector("button").hidden = true;
    for (const button of buttons) button.disabled = false;
  };
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    bar.value = total ? 100 * loaded / total : 0;
    count(`${megabytes(loaded)} of ${megabytes(total)} MB`);
  });
  request.upload.addEventListener("load", () => say("All of it is sent; the server stores it."));
  request.addEventListener("load", () => {
    if (request.responseURL !== form.action) location.assign(request.responseURL);
    else if (!showAnswer(request.responseText, form)) end(`The server did not take it (${request.status}).`);
  });
  request.addEventListener("error", () => end("The connection broke off. Try again."));
  request.addEventListener("abort", () => end("The upload was cancelled."));
  part.hidden = false;
  for (const unwanted of form.querySelectorAll("[hidden] input[type=file]")) fields.delete(unwanted.name);
  const size = Math.max(...[...fields.values()].map((value) => value.size ?? 0)), most = Number(form.dataset.most);
  if (most && size > most * MIB) {
    end(`The file is larger than ${most} MB.`);
    return;
  }
  request.open("POST", form.action);
  request.send(fields);
  for (const button of buttons) button.disabled = true;
  bar.parentNode.hidden = part.querySelector("button").hidden = false;
  part.querySelector("button").onclick = () => request.abort();
  bar.value = 0;
  count("");
  say("The archive is being sent.");
};
const MIB = 2 ** 20;
const megabytes = (bytes) => (bytes / MIB).toFixed(1);
// the page that came instead of another address takes the place of this one; files that were chosen stay so
const showAnswer = (text, form) => {
  const page = new DOMParser().parseFromString(text, "text/html"), main = page.querySelector("main");
  if (!main) return false;
  for (const chosen of form.querySelectorAll("input[type=file]")) {
    const field = main.querySelector(`#${chosen.id}`);
    if (field) field.files = chosen.files;
  }
  document.title = page.title;
  document.querySelector("main").replaceWith(main);
  followChoices(main);
  showUploads(main);
  findFault(main);
  return true;
};
showUploads(document);
// parts of a page that change by themselves: the page is asked again as long as one says that it still does
const PAUSE = 2000, FAULT = 500;
const follow = async () => {
  const address = document.querySelector("[data-moving]")?.dataset.moving;
  if (!address) return;
  await new Promise((go) => { setTimeout(go, PAUSE); });
  const answer = document.hidden ? null : await fetch(address).catch(() => null);
  if (answer && answer.status < FAULT) {
    if (!answer.ok || answer.redirected) {
      location.assign(address);
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(part.id);
      if (fresh && fresh.innerHTML !== part.innerHTML) part.innerHTML = fresh.innerHTML;
    }
  }
  follow();
};
follow();
// a page for a wall: its contents are replaced while it is in sight; the time on it says how old they are
for (const part of document.querySelectorAll("[data-refreshes]")) {
  setInterval(async () => {
    const answer = document.hidden ? null : await fetch(location.href).catch(() => null);
    if (!answer || answer.status >= FAULT) return;
    if (!answer.ok || answer.redirected) {
      location.reload();
      return;
    }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (fresh) part.innerHTML = fresh.innerHTML;
  }, 1000 * part.dataset.refreshes);
}
// one box checks all of a list
for (const box of document.querySelectorAll("[data-checks]")) {
  box.parentNode.hidden = false;
  box.addEventListener("change", () => {
    for (const other of document.getElementsByName(box.dataset.checks)) other.checked = box.checked;
  });
}
// what has come to a list since it was shown: counted while the page is in sight
const COUNTS_EVERY = 15000;
for (const part of document.querySelectorAll("[data-counts]")) {
  setInterval(async () => {
    const answer = document.hidden ? null : await fetch(part.dataset.counts).catch(() => null);
    const { count = 0, is_more } = answer?.ok && !answer.redirected ? await answer.json() : {};
    if (!count || part.dataset.count === String(count)) return;
    part.dataset.count = count;
    const link = document.createElement("a");
    link.href = part.dataset.shows;
    link.textContent = "show";
    part.replaceChildren(`${count}${is_more ? "+" : ""} new alert${count > 1 ? "s" : ""}, `, link);
  }, COUNTS_EVERY);
}
// single keys lead to pages; not in fields, where they are typed, and not with a modifier, which is the browser's
const KEY_PAUSE = 1500;
let keyBefore = "", keyAt = 0;
const isTyping = (element) => element.isContentEditable || element.matches("input, textarea, select");
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const after = event.timeStamp - keyAt < KEY_PAUSE ? keyBefore : "", home = document.body.dataset.project;
  keyBefore = event.key;
  keyAt = event.timeStamp;
  const pages = { h: "/", t: "/dashboard/todos" };
  if (home) Object.assign(pages, { p: home, i: `${home}/-/issues`, a: `${home}/-/alert_management` });
  const field = document.getElementById("query") ?? document.getElementById("find");
  if (after === "g" && pages[event.key]) location.assign(pages[event.key]);
  else if (event.key === "/" && field) {
    event.preventDefault();
    field.closest(".menus")?.parentNode.querySelector("details.menu")?.setAttribute("open", "");
    field.focus();
  } else if (event.key === "?") document.getElementById("keys")?.showModal();
  else if (after !== "g") document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`)?.click();
});
// tasks of texts can be ticked by those who may change them: the server changes the line of the text
for (const part of document.querySelectorAll("[data-tasks]")) {
  for (const item of part.querySelectorAll("li[data-sourcepos]")) {
    const box = item.querySelector(":scope > input[type=checkbox], :scope > p:first-child > input[type=checkbox]");
    if (!box) continue;
    box.disabled = false;
    box.setAttribute("aria-label", item.textContent.trim().slice(0, 100));
    box.addEventListener("change", async () => {
      const fields = new URLSearchParams({ line: item.dataset.sourcepos.split(":")[0], checked: box.checked });
      fields.set("csrf_token", document.querySelector("input[name=csrf_token]")?.value ?? "");
      const answer = await fetch(part.dataset.tasks, { method: "POST", body: fields, redirect: "manual" }).catch(() => null);
      if (answer?.type === "opaqueredirect") return;
      box.checked = !box.checked;
      const fault = document.createElement("span");
      fault.className = "wrong";
      fault.setAttribute("role", "alert");
      fault.textContent = " Not saved: the text was changed meanwhile. Load the page again.";
      item.append(fault);
    });
  }
}
// fields for Markdown: files that are chosen, pasted or dropped are uploaded, and a button shows the text as it will look
for (const field of document.querySelectorAll("textarea[data-markdown]")) {
  const home = document.body.dataset.project, form = field.form;
  if (!home || !form) continue;
  const token = () => form.querySelector("input[name=csrf_token]").value;
  const part = document.createElement("div"), button = document.createElement("button");
  const note = document.createElement("span"), shown = document.createElement("div");
  part.className = "actions";
  button.type = "button";
  button.textContent = "Preview";
  note.className = "help";
  note.setAttribute("role", "status");
  note.textContent = "Markdown. Files can be pasted or dropped here.";
  const chooser = document.createElement("input"), opener = document.createElement("button");
  chooser.type = "file";
  chooser.multiple = chooser.hidden = true;
  chooser.setAttribute("aria-label", "Files to attach");
  opener.type = "button";
  opener.textContent = "Attach files";
  opener.addEventListener("click", () => chooser.click());
  shown.className = "box";
  shown.hidden = true;
  part.append(button, opener, chooser, note);
  field.after(part, shown);
  button.addEventListener("click", async () => {
    if (field.hidden) {
      [field.hidden, shown.hidden, button.textContent] = [false, true, "Preview"];
      field.focus();
      return;
    }
    const body = new URLSearchParams({ csrf_token: token(), text: field.value });
    const answer = await fetch(`${home}/-/preview`, { method: "POST", body }).catch(() => null);
    if (!answer?.ok || answer.redirected) {
      note.textContent = "The preview failed. Try again.";
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    shown.replaceChildren(...page.body.childNodes);
    [field.hidden, shown.hidden, button.textContent] = [true, false, "Write"];
  });
  const insert = (before, after) => { field.value = field.value.replace(before, () => after); };
  const attach = async (file) => {
    const place = `[Uploading ${file.name}…]()`;
    field.setRangeText(`${place}\n`, field.selectionStart, field.selectionEnd, "end");
    const body = new FormData();
    body.append("csrf_token", token());
    body.append("file", file, file.name || "image.png");
    const answer = await fetch(`${home}/-/uploads`, { method: "POST", body }).catch(() => null);
    const upload = answer?.ok && !answer.redirected ? await answer.json() : null;
    insert(place, upload?.markdown ?? "");
    note.textContent = upload ? `${file.name} is attached.` : `${file.name} was not taken${answer ? ` (${answer.status})` : ""}.`;
  };
  const take = (event, files) => {
    if (!files.length) return;
    event.preventDefault();
    for (const file of files) attach(file);
  };
  chooser.addEventListener("change", () => {
    for (const file of chooser.files) attach(file);
    chooser.value = "";
  });
  field.addEventListener("paste", (event) => take(event, event.clipboardData?.files ?? []));
  field.addEventListener("dragover", (event) => event.preventDefault());
  field.addEventListener("drop", (event) => take(event, event.dataTransfer?.files ?? []));
}
