"""The entry script of the dashboard: page settings, the look, the navigation. Nothing else."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

HERE = Path(__file__).resolve().parent
ABOUT = "**Flashpoint** says what a PyTorch build did to your workload, by how much, how sure and why."
#: Title -> file in ``views``; the path is the title in lower case with hyphens, the first is ``/``.
PAGES = {
    "Overview": "overview.py",
    "Compare": "compare.py",
    "Runs": "runs.py",
    "New run": "new_run.py",
    "Builds": "builds.py",
    "Nodes": "nodes.py",
}


def main() -> None:
    """Draw the frame and run the page that the address names."""
    wordmark = str(HERE / "static" / "wordmark.svg")
    st.set_page_config(
        page_title="Flashpoint",
        page_icon=str(HERE / "static" / "logo.svg"),
        layout="wide",
        menu_items={"About": ABOUT},
    )
    st.html(HERE / "static" / "look.css")
    st.logo(wordmark, icon_image=wordmark, size="medium")
    page = st.navigation(
        [
            st.Page(
                HERE / "views" / file,
                title=title,
                url_path=title.lower().replace(" ", "-"),
                default=title == "Overview",
            )
            for title, file in PAGES.items()
        ],
        position="top",
    )
    if page.title != "New run":
        # Whoever comes back to New run makes a new request; see app.views.new_run.
        st.session_state.pop("queue-key", None)
    if page.title not in ("New run", "Runs"):
        st.session_state.pop("run-note", None)
    page.run()


if __name__ == "__main__":
    main()
