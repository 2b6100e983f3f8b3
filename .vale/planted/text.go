package planted

var message = "the Secret is for whoever may not read it"

var value = `
A message for whoever may not read.
`
