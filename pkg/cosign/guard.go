package cosign

import "errors"

// errPanic stands for a panic of a library: whatever made it do so is not a
// signature.
var errPanic = errors.New("the library gave up")

// guard runs a library call and turns a panic into an error.
func guard(call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return call()
}
