const place = document.getElementById("document");
SwaggerUIBundle({
  url: place.dataset.address,
  domNode: place,
  deepLinking: true,
  persistAuthorization: false,
  // hundreds of operations and schemas take a browser long to lay out, so they are opened one tag at a time
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  filter: true,
});
