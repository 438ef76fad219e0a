"""The charts: pure functions, a frame and a mode in, an Altair chart out. No Streamlit, no SQL."""
