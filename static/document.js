const place = document.getElementById("document");
SwaggerUIBundle({ url: place.dataset.address, domNode: place, deepLinking: true, persistAuthorization: false });
