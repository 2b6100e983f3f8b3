// Package slip takes the identity of this process for what a namespace's resource names,
// without asking whether its owner may use it. On a person's machine that identity is the
// person's own login at a cloud.
package slip

import "github.com/landwaiter/landwaiter/pkg/remote/external"

type mine struct{}

func (mine) identity() {}

func asMine() external.Source {
	return external.Source{Owner: "team-a", As: mine{}} // want "unexported method identity"
}

func asPod() external.Source {
	return external.Source{Owner: "team-a", As: external.pod{}} // want "name pod not exported by package external"
}

func unchecked() (external.Identity, error) {
	return external.Pod() // want "not enough arguments in call to external.Pod"
}
