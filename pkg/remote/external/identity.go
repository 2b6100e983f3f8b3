package external

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Identity is as whom a source is fetched: with credentials that a resource gives, as a
// ServiceAccount, or as the pod of this process. The types are of this package alone, so
// nobody else can make one but by [Given], [ServiceAccount] and [Pod]. Nil is nobody, which
// suffices for public repositories.
type Identity interface{ identity() }

// given are credentials, as a JSON object of strings. It is comparable, as a [Source] is.
type given string

// pod is the identity of this process.
type pod struct{}

func (given) identity() {}
func (pod) identity()   {}

// String, GoString and MarshalText return placeholders.
func (given) String() string               { return "(secret)" }
func (given) GoString() string             { return "(secret)" }
func (given) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// Given returns the identity of credentials. It returns an error if there are none: an
// empty Secret must not pass for "no credentials are needed".
func Given(credentials map[string]string) (Identity, error) {
	kept := make(map[string]string, len(credentials))
	for name, value := range credentials {
		if value = strings.TrimSpace(value); value != "" {
			kept[name] = value
		}
	}
	if len(kept) == 0 {
		return nil, errors.New("it holds no credentials")
	}
	text, err := json.Marshal(kept)
	return given(text), err
}

// Pod returns the identity of this process. It returns an error for a namespace: only
// resources of the cluster may use it.
func Pod(owner verify.Namespace) (Identity, error) {
	if owner != verify.Cluster {
		return nil, errors.New("a namespace's resource needs credentials of its own")
	}
	return pod{}, nil
}

// held returns what an identity holds, with the names that are needed. Ambient
// says that it is the pod's instead, which holds nothing.
func held(as Identity, needed ...string) (values map[string]string, ambient bool, err error) {
	switch as := as.(type) {
	case pod:
		return nil, true, nil
	case given:
		if err := json.Unmarshal([]byte(as), &values); err != nil {
			return nil, false, problem("the credentials cannot be read")
		}
		for _, name := range needed {
			if values[name] == "" {
				return nil, false, problemf("the credentials have no %s; needed: %s", name, strings.Join(needed, ", "))
			}
		}
		return values, false, nil
	case account:
		return nil, false, problem("a ServiceAccount is not supported here: use secretRef")
	}
	return nil, false, problem("there are no credentials")
}
