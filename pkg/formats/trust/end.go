package trust

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// End is the moment at which a part of trust material ends. It says nothing about whether
// the trust material may still be used: verifiers decide that, for each signature.
type End struct {
	// Part names what ends, such as `certificate "CN=root"`.
	Part string
	At   time.Time
	// Notice is how long before the end somebody should act. Zero is [Notice].
	Notice time.Duration
	// Successor is when the last part that can take this one's place ends. Zero means
	// that there is none.
	Successor time.Time
}

// Due reports whether somebody should act on the end now. An end that has passed stays due
// until the part is removed, unless a successor has taken its place.
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

// CertificateEnds returns when certificates end.
func CertificateEnds(certificates []*x509.Certificate) []End {
	ends := make([]End, 0, len(certificates))
	for _, certificate := range certificates {
		ends = append(ends, End{Part: fmt.Sprintf("certificate %.100q", certificate.Subject.String()), At: certificate.NotAfter.UTC()})
	}
	return ends
}

// PEMEnds returns when the certificates in PEM text end. It skips everything else, such as
// the private key beside a client certificate.
func PEMEnds(text []byte) []End {
	var certificates []*x509.Certificate
	for _, block := range Blocks(text) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil { // whoever uses the text has refused the rest
			certificates = append(certificates, certificate)
		}
	}
	return CertificateEnds(certificates)
}

// RoleEnd returns when the metadata of a role of a TUF repository ends.
func RoleEnd(name string, version int64, at time.Time) End {
	return End{Part: fmt.Sprintf("TUF role %.20s, version %d", name, version), At: at.UTC()}
}

// never is the end of what has none.
func never() time.Time { return time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) }

// RootEnds returns when the parts of a Sigstore root end. A root keeps what it has retired,
// because old signatures need it. So only the last authority of an address and the last log
// of a kind count: an end that a successor covers concerns nobody.
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

// windowEnd returns the end of a validity period and of the certificates, whichever is first.
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

// partEnds returns the end of each address, with the last end of the others as successor.
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

// logEnds returns when the last log of a kind ends. Logs are replaced by others with
// addresses of their own, one each year.
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
