"""The HTTP application: authentication, the API, Agentic Resource Discovery and the page."""
