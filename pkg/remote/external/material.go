package external

import (
	"context"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/pkg/formats/trust"
)

// Material is verified trust material to carry to a site without a network.
type Material struct {
	// Root is a trusted_root.json, and Roles the annotation about the TUF metadata that it was
	// verified with.
	Root  []byte
	Roles string
	// TimestampAuthorities and RevocationLists are PEM text.
	TimestampAuthorities, RevocationLists []byte
	// Ends are the expiry times of its parts, the earliest first.
	Ends []trust.End
}

// AddRoot adds the trusted root of a TUF repository, as [CopyTUF] reads it, and with timestamps the roots
// of its timestamp authorities. The error is a [RefusedError] if the repository answered with unusable
// content.
func (m *Material) AddRoot(ctx context.Context, from TUFRepository, timestamps bool) error {
	copied, err := CopyTUF(ctx, from)
	if err != nil {
		return err
	}
	root, err := trust.ParseSigstoreRoot(copied.TrustedRoot)
	if err != nil {
		return &RefusedError{problem(err.Error())}
	}
	roles, err := EncodeRoles(copied.Roles)
	if err != nil {
		return err
	}
	if timestamps {
		if m.TimestampAuthorities = trust.TimestampRoots(root); m.TimestampAuthorities == nil {
			return &RefusedError{"the trusted root has no timestamp authority; leave out --timestamp-authorities"}
		}
	}
	m.Root, m.Roles = copied.TrustedRoot, roles
	m.ends(trust.RootEnds(root))
	for _, role := range copied.Roles {
		if role.Renews() {
			m.ends([]trust.End{trust.RoleEnd(role.Name, role.Version, role.Expires)})
		}
	}
	return nil
}

// AddRevocationLists adds certificate revocation lists, DER or PEM. The error is a [RefusedError] if one
// is invalid or has expired.
func (m *Material) AddRevocationLists(content []byte, now time.Time) error {
	encoded, err := trust.EncodeRevocationLists(content, now)
	if err != nil {
		return &RefusedError{problem(err.Error())}
	}
	lists, err := trust.ParseRevocationLists(encoded)
	if err != nil {
		return &RefusedError{problemf("read what was encoded: %v", err)}
	}
	m.RevocationLists = append(m.RevocationLists, encoded...)
	m.ends(trust.ListEnds(lists))
	return nil
}

// ends sorts Ends by time.
func (m *Material) ends(more []trust.End) {
	m.Ends = append(m.Ends, more...)
	slices.SortStableFunc(m.Ends, func(a, b trust.End) int { return a.At.Compare(b.At) })
}
