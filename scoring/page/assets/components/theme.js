/*
Light and dark: as the system has it until the reader says otherwise, which is kept.

startTheme()                 sets data-theme of the page; "themechange" is sent to the document when it changes
themeToggle() -> button      between light and dark
isDark() -> boolean          what is shown now; never in print
*/

const THEME_KEY = "wildproxy-theme";
const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;

function keptTheme() {
  try {
    return localStorage.getItem(THEME_KEY);
  } catch {
    return null;
  }
}

function startTheme() {
  chosenTheme = keptTheme();
  applyTheme();
  darkSystem.addEventListener("change", applyTheme);
}

function isDark() {
  return chosenTheme ? chosenTheme === "dark" : darkSystem.matches;
}

function applyTheme() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  document.dispatchEvent(new CustomEvent("themechange"));
}

function themeToggle() {
  const made = button("", () => {
    chosenTheme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem(THEME_KEY, chosenTheme);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    applyTheme();
  });
  made.classList.add("theme-toggle");
  const say = () => {
    made.textContent = isDark() ? "☀ Light" : "☾ Dark";
    made.setAttribute("aria-label", isDark() ? "Switch to the light theme" : "Switch to the dark theme");
  };
  document.addEventListener("themechange", say);
  say();
  return made;
}
