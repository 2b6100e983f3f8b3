// Package slip tells a Config that it has no mandatory policies, as a forgotten field once did:
// every exception would lift them.
package slip

import "github.com/landwaiter/landwaiter/pkg/decide/verify"

func lifted(config *verify.Config) verify.Config {
	config.Mandatory = nil               // want "config.Mandatory undefined"
	return verify.Config{Mandatory: nil} // want "unknown field Mandatory in struct literal of type verify.Config"
}
