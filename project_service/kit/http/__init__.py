"""HTTP: errors, parameters, schemas, responses, URLs, forms, proxies."""
