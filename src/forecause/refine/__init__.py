"""The refine station: graphs past the assumptions of discovery."""
