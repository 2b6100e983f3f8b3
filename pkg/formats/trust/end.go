package trust

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// End is the expiry of a part of trust material. It does not say whether the trust material
// may still be used: verifiers decide that for each signature.
type End struct {
	// Part names the part that expires, such as `certificate "CN=root"`.
	Part string
	At   time.Time
	// Notice is how long before the expiry somebody should act. Zero is [Notice].
	Notice time.Duration
	// Successor is the expiry of the last part that can replace this one. Zero means that there
	// is none.
	Successor time.Time
}

// Due reports whether somebody should act on the expiry now. An expiry in the past stays due
// until the part is removed, unless it has a successor that is still valid.
func (e End) Due(now time.Time) bool {
	notice := e.Notice
	if notice == 0 {
		notice = Notice
	}
	if !e.At.After(now) && e.Successor.After(now) {
		return false
	}
	return !now.Before(e.At.Add(-notice))
}

// CertificateEnds returns the expiry of each certificate.
func CertificateEnds(certificates []*x509.Certificate) []End {
	ends := make([]End, 0, len(certificates))
	for _, certificate := range certificates {
		ends = append(ends, End{Part: fmt.Sprintf("certificate %.100q", certificate.Subject.String()), At: certificate.NotAfter.UTC()})
	}
	return ends
}

// PEMEnds returns the expiry of the certificates in PEM text. It skips everything else, such
// as the private key of a client certificate.
func PEMEnds(text []byte) []End {
	var certificates []*x509.Certificate
	for _, block := range Blocks(text) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil { // other code has rejected the rest
			certificates = append(certificates, certificate)
		}
	}
	return CertificateEnds(certificates)
}

// RoleEnd returns the expiry of the metadata of a role of a TUF repository.
func RoleEnd(name string, version int64, at time.Time) End {
	return End{Part: fmt.Sprintf("TUF role %.20s, version %d", name, version), At: at.UTC()}
}

// never is the expiry of parts that do not expire.
func never() time.Time { return time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) }

// RootEnds returns the expiry of the parts of a Sigstore root. A root keeps retired parts,
// because old signatures need them. So only the last authority of an address and the last log
// of a kind count.
func RootEnds(r *SigstoreRoot) []End {
	authorities, stampers := map[string]time.Time{}, map[string]time.Time{}
	for _, authority := range r.FulcioCertificateAuthorities() {
		if a, ok := authority.(*root.FulcioCertificateAuthority); ok {
			later(authorities, a.URI, windowEnd(a.ValidityPeriodEnd, append([]*x509.Certificate{a.Root}, a.Intermediates...)))
		}
	}
	for _, authority := range r.TimestampingAuthorities() {
		if a, ok := authority.(*root.SigstoreTimestampingAuthority); ok {
			later(stampers, a.URI, windowEnd(a.ValidityPeriodEnd, append([]*x509.Certificate{a.Root, a.Leaf}, a.Intermediates...)))
		}
	}
	return slices.Concat(partEnds("CA", authorities), partEnds("timestamp authority", stampers),
		logEnds("transparency log", r.RekorLogs()), logEnds("certificate transparency log", r.CTLogs()))
}

// windowEnd returns the end of a validity period or the first expiry of the certificates,
// whichever is earlier.
func windowEnd(period time.Time, certificates []*x509.Certificate) time.Time {
	end := never()
	if !period.IsZero() {
		end = period
	}
	for _, certificate := range certificates {
		if certificate != nil && certificate.NotAfter.Before(end) {
			end = certificate.NotAfter
		}
	}
	return end.UTC()
}

func later(ends map[string]time.Time, address string, end time.Time) {
	if end.After(ends[address]) {
		ends[address] = end
	}
}

// partEnds returns the expiry of each address, with the last expiry of the others as
// successor.
func partEnds(kind string, ends map[string]time.Time) []End {
	var all []End
	for _, address := range slices.Sorted(maps.Keys(ends)) {
		end := End{Part: kind, At: ends[address]}
		if address != "" {
			end.Part = fmt.Sprintf("%s %.100q", kind, address)
		}
		for other, at := range ends {
			if other != address && at.After(end.Successor) {
				end.Successor = at
			}
		}
		if end.At.Before(never()) {
			all = append(all, end)
		}
	}
	return all
}

// logEnds returns the expiry of the last log of a kind. Each year, a log with a new address
// replaces the previous one.
func logEnds(kind string, logs map[string]*root.TransparencyLog) []End {
	if len(logs) == 0 {
		return nil
	}
	last := End{Part: "last " + kind}
	for _, log := range logs {
		if end := windowEnd(log.ValidityPeriodEnd, nil); end.After(last.At) {
			last.At = end
		}
	}
	if !last.At.Before(never()) {
		return nil
	}
	return []End{last}
}
