package cosign

import "errors"

// errPanic stands for the panic of a library. Evidence that causes one is malformed.
var errPanic = errors.New("the library gave up")

// guard runs a library call and turns a panic into errPanic.
func guard(call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return call()
}
