"""The pages, one file each. Streamlit runs them as scripts; importing one does nothing."""
