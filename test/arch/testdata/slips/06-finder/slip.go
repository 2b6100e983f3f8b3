// Package slip makes services that do not say how to look up a namespace that is not in the
// snapshot. The cluster's rules, which may be laxer, would answer for it, and for a namespace
// that does not exist.
package slip

import "github.com/landwaiter/landwaiter/pkg/resources/service"

func forgotten() (*service.Service, error) {
	return service.New(service.Options{}) // want "not enough arguments in call to service.New"
}

func later(s *service.Service) {
	s.SetFinder(nil) // want "s.SetFinder undefined"
}
