package suite

// FluxTools is the folder with Flux's controllers, sops and age.
const FluxTools = "LANDWAITER_FLUX_TOOLS"
