package sigstore

import (
	"fmt"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// TrustedRootWithoutLogs returns a trusted_root.json of the shape that GitHub's own
// instance has: an authority for certificates and one for timestamps, and no logs.
func (s *Sigstore) TrustedRootWithoutLogs() ([]byte, error) {
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, s.virtual.FulcioCertificateAuthorities(), nil, s.virtual.TimestampingAuthorities(), nil)
	if err != nil {
		return nil, fmt.Errorf("make a trusted root: %w", err)
	}
	text, err := made.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write the trusted root: %w", err)
	}
	return text, nil
}
