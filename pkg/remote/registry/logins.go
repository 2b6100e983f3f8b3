package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// worked remembers which login of several worked last for a repository, so that a wrong one is not sent
// repeatedly: registries lock accounts for that. It is safe for concurrent use.
type worked struct {
	mu sync.Mutex
	of map[string]int
}

func (w *worked) get(repository string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[repository]
}

func (w *worked) set(repository string, login int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil || len(w.of) >= maxWorked {
		w.of = map[string]int{}
	}
	w.of[repository] = login
}

// tryLogins calls f with each login of the location until one is not refused, as kubelets do. With absent, "not
// found" counts as a refusal: registries return it to logins without read permission. With several logins, enough
// decides whether the results of one are complete. If all are refused, the error has each cause.
func tryLogins[T any](p *location, absent bool, f func(*location) (T, error),
	enough func(*location, T, error) (bool, error)) (value T, err error) {
	logins, more := p.store.Logins.For(p.at.Host, p.at.Repository, slices.Contains(p.store.Registries, p.at.Host))
	if len(logins) == 1 {
		as := *p
		as.credential = logins[0]
		value, err = f(&as)
		return value, as.loginRefused(err)
	}
	first := p.worked.get(p.at.Name())
	var refusals []error
	for n := range logins {
		i, as := (first+n)%len(logins), *p
		as.credential = logins[i]
		got, err := f(&as)
		all, err := enough(&as, got, err)
		if all || err != nil && !refusal(err, absent) {
			p.worked.set(p.at.Name(), i)
			return got, err
		}
		if err != nil {
			refusals = append(refusals, err)
		}
	}
	if len(refusals) == 0 && !more {
		return value, nil // each login was told that there is nothing
	}
	return value, p.allRefused(refusals, len(logins), more)
}

// refusal reports whether everything that an error joins means that a login is the wrong one.
func refusal(err error, absent bool) bool {
	var all failures
	if errors.As(err, &all) {
		return !slices.ContainsFunc(all, func(err error) bool { return !refusal(err, absent) })
	}
	return verify.HasReason(err, policy.ReasonAccessDenied) || verify.HasReason(err, policy.ReasonUntrustedTokenServer) || absent &&
		verify.HasReason(err, policy.ReasonNotFound)
}

// loginRefused adds to a refusal that there was a login, whose it is and who can renew it. It does not name the
// Secret: a team must not learn the name of a ClusterStore's Secret.
func (p *location) loginRefused(err error) error {
	var refused *verify.PermanentError
	store := p.store.Source
	if !errors.As(err, &refused) || refused.Reason != policy.ReasonAccessDenied || p.credential == (Credential{}) ||
		store == (policy.ObjectRef{}) {
		return err
	}
	return verify.PermanentWith(refused.Reason,
		fmt.Errorf("%w with the login of %s, which is wrong, has expired, or may not read %s", err, store, p.at.Name()),
		store.Owner(fmt.Sprintf("renew the login for %s that %s uses, or let it read %s", p.at.Host, store, p.at.Name())))
}

// allRefused is the error if no login is enough. Refused access comes first, because "not found" may mean that,
// too.
func (p *location) allRefused(refusals []error, tried int, more bool) error {
	if len(refusals) == 0 {
		refusals = []error{verify.PermanentWith(policy.ReasonAccessDenied, fmt.Errorf("cannot read %s", p.at.Name()), "")}
	}
	slices.SortStableFunc(refusals, func(a, b error) int {
		rank := func(err error) int {
			if verify.HasReason(err, policy.ReasonNotFound) {
				return 1
			}
			return 0
		}
		return cmp.Compare(rank(a), rank(b))
	})
	err := join(refusals...)
	text := fmt.Sprintf("%d logins of %s were tried", tried, p.store.Source)
	if more {
		text = fmt.Sprintf("more logins of %s match than are tried, which are %d", p.store.Source, tried)
	}
	var permanent *verify.PermanentError
	if !errors.As(err, &permanent) {
		return fmt.Errorf("%w (%s)", err, text)
	}
	remediation := permanent.Remediation
	if permanent.Reason == policy.ReasonAccessDenied {
		remediation = "correct the login for " + p.at.Name() + " in the pull secrets of the Store that applies, and remove those " +
			"that are not for it"
	}
	return verify.PermanentWith(permanent.Reason, fmt.Errorf("%w (%s)", err, text), remediation)
}

// whole is for answers that only logins with read permission get.
func whole[T any](_ *location, _ T, err error) (bool, error) { return err == nil, err }

// listed returns a function that decides whether a list for one of several logins is complete. An empty one is
// complete only if the login may read the subject: otherwise the registry may hide the list from it.
func listed(ctx context.Context, subject image.Reference) func(*location, []ocispec.Descriptor, error) (bool, error) {
	return func(p *location, found []ocispec.Descriptor, err error) (bool, error) {
		if len(found) > 0 || err != nil {
			return len(found) > 0, err
		}
		_, hidden := p.resolve(ctx, subject)
		if p.role != verify.RoleOrigin && verify.HasReason(hidden, policy.ReasonNotFound) {
			return false, nil // the image need not exist
		}
		return hidden == nil, hidden
	}
}
