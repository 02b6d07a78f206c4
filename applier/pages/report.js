for (const button of document.querySelectorAll(".sql button")) button.addEventListener("click", async () => {
    const statement = button.previousElementSibling;
    getSelection().selectAllChildren(statement);
    try { await navigator.clipboard.writeText(statement.textContent); } catch { document.execCommand("copy"); }
    button.textContent = "Copied";
});
