// The page in a notebook's cell, between its frame and the kernel: passes on questions, answers and
// what was selected.
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    frame.title = "Map of a release";
    Object.assign(frame.style, { width: "100%", height: "620px", border: "1px solid #8884", borderRadius: "8px" });
    const fromPage = ({ source, data }) => {
      if (source !== frame.contentWindow) return;
      if (data.question) model.send(data);
      if (data.asked) {
        model.set("asked", data.asked);
        model.save_changes();
      }
    };
    const fromKernel = (answer) => frame.contentWindow?.postMessage(answer, "*");
    window.addEventListener("message", fromPage);
    model.on("msg:custom", fromKernel);
    frame.srcdoc = model.get("page");
    el.append(frame);
    return () => {
      window.removeEventListener("message", fromPage);
      model.off("msg:custom", fromKernel);
    };
  },
};
