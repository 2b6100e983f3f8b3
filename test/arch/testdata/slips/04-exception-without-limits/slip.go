// Package slip makes an Exception that is in force without saying by whose word, as a nil list of
// grants once did: one of a namespace would let any image in.
package slip

import "github.com/landwaiter/landwaiter/pkg/decide/verify"

func everything(x verify.Exception) verify.Exception {
	x.Grants = nil                           // want "x.Grants undefined"
	return verify.Exception{unlimited: true} // want "cannot refer to unexported field unlimited in struct literal of type verify.Exception"
}
