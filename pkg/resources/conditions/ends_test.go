package conditions_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

const endsDay = 24 * time.Hour

func authorityUntil(t *testing.T, name string, end time.Time) string {
	t.Helper()
	authority, err := fixture.NewAuthorityWith(name, fixture.CertificateOptions{NotBefore: end.Add(-5000 * endsDay), NotAfter: end})
	require.NoError(t, err)
	return string(authority.CertificatePEM)
}

func inline(kind, text string) string {
	return "type: " + kind + "\nsource:\n  inline: |\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

func TestTheConditionExpiresSoonTellsWhatEndsWhen(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	later, soon, past := authorityUntil(t, "later", now.Add(400*endsDay)), authorityUntil(t, "soon", now.Add(20*endsDay)),
		authorityUntil(t, "past", now.Add(-endsDay))
	instance, err := sigstore.New()
	require.NoError(t, err)
	root, err := instance.TrustedRoot()
	require.NoError(t, err)
	configMap := func(roles string) string {
		annotation := ""
		if roles != "" {
			annotation = fmt.Sprintf(", annotations: {landwaiter.dev/tuf-roles: %q}", roles)
		}
		return fmt.Sprintf("kind: ConfigMap\nmetadata: {name: exported, namespace: landwaiter-system%s}\ndata:\n  root: |\n    %s", annotation,
			strings.ReplaceAll(strings.TrimSpace(later), "\n", "\n    "))
	}
	const exported = "type: TimestampAuthorities\nsource: {configMapKeyRef: {name: exported, key: root}}"
	roles := func(after time.Duration) string {
		return fmt.Sprintf(`[{"role":"root","version":14,"expires":%q},{"role":"timestamp","version":9,"expires":%q}]`, now.Add(after).Format(time.RFC3339),
			now.Add(endsDay).Format(time.RFC3339))
	}
	for name, c := range map[string]struct {
		documents []string
		ref, want string // reason; "!" in front of one of a condition that is False, "?" Unknown
		says      string
	}{
		"keys have no end": {[]string{written.Object("ClusterTrustStore", "", "x", written.InlineKey(string(written.NewKey(t).PEM)))},
			"ClusterTrustStore x", "!NoExpiry", "nothing in it has an end"},
		"certificates that last": {[]string{written.Object("ClusterTrustStore", "", "x", inline("Certificates", later))}, "ClusterTrustStore x",
			"!NotExpiring", "30 days"},
		"one that ends soon": {[]string{written.Object("ClusterTrustStore", "", "x", inline("Certificates", later+soon))}, "ClusterTrustStore x",
			"Expiring", `CN=soon,O=Landwaiter Fixtures,ST=WA,C=US" expires at ` + now.Add(20*endsDay).Format(time.RFC3339) + "; replace it in time"},
		"one that has ended comes first": {[]string{written.Object("ClusterTrustStore", "", "x", inline("TimestampAuthorities", soon+past))}, "ClusterTrustStore x",
			"Expired", `CN=past,O=Landwaiter Fixtures,ST=WA,C=US" expired at ` + now.Add(-endsDay).Format(time.RFC3339) + ", certificate"},
		"a namespace's": {[]string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "x", inline("Certificates", soon))},
			"TrustStore team-a/x", "Expiring", "soon"},
		"a root whose CAs end": {[]string{written.Object("ClusterTrustStore", "", "x", inline("SigstoreRoot", string(root)))}, "ClusterTrustStore x",
			"Expiring", `CA "`},
		"one that cannot be read": {[]string{written.Object("ClusterTrustStore", "", "x", "type: Certificates\nsource: {inline: rubbish}")},
			"ClusterTrustStore x", "?ExpiryUnknown", "Ready"},
		"a ConfigMap without roles": {[]string{configMap(""), written.Object("ClusterTrustStore", "", "x", exported)}, "ClusterTrustStore x",
			"!NotExpiring", ""},
		"exported roles that last": {[]string{configMap(roles(100 * endsDay)), written.Object("ClusterTrustStore", "", "x", exported)}, "ClusterTrustStore x",
			"!NotExpiring", ""},
		"an exported role ends soon": {[]string{configMap(roles(5 * endsDay)), written.Object("ClusterTrustStore", "", "x", exported)}, "ClusterTrustStore x",
			"Expiring", "TUF role root, version 14 expires at"},
		"roles that nobody can read": {[]string{configMap("yes"), written.Object("ClusterTrustStore", "", "x", exported)}, "ClusterTrustStore x",
			"?ExpiryUnknown", "annotation landwaiter.dev/tuf-roles of ConfigMap landwaiter-system/exported cannot be read"},
		"roles without an end": {[]string{configMap(`[{"role":"root"}]`), written.Object("ClusterTrustStore", "", "x", exported)}, "ClusterTrustStore x",
			"?ExpiryUnknown", "export the ConfigMap again"},
		"a store without a bundle": {[]string{written.Object("ClusterStore", "", "x", "registries: [r.example.com]")}, "ClusterStore x", "!NoExpiry", ""},
		"a store whose " +
			"bundle ends": {
			[]string{written.Object("ClusterStore", "", "x", "registries: [r.example.com]\ncaBundle:\n  inline: |\n    "+
				strings.ReplaceAll(strings.TrimSpace(soon), "\n", "\n    "))}, "ClusterStore x", "Expiring", "soon"},
		"a store that cannot be used": {[]string{written.Object("ClusterStore", "", "x", "registries: [r.example.com]\ncaBundle: {inline: rubbish}")},
			"ClusterStore x", "?ExpiryUnknown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, _ := written.Compiled(written.Objects(t, c.documents...))
			condition, ok := written.ReportOn(t, snapshot, c.ref).ExpiresSoon(now)
			require.True(t, ok)
			got := written.Short(condition)
			if condition.Unknown {
				got = "?" + string(condition.Reason)
			}
			require.Equal(t, c.want, got, condition.Message)
			require.Contains(t, condition.Message, c.says)
		})
	}
	snapshot, _ := written.Compiled(written.Objects(t, written.Object("ClusterVerificationPolicy", "", "p", "defaultAction: Allow")))
	_, ok := written.ReportOn(t, snapshot, "ClusterVerificationPolicy p").ExpiresSoon(now)
	require.False(t, ok, "it holds no trust material")
}

// What is fetched again and again is fresh by itself; time only matters when that fails.
func TestFetchedMaterialEndsWhenFetchingFailsForLong(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	instance, err := sigstore.New()
	require.NoError(t, err)
	root, err := instance.TrustedRoot()
	require.NoError(t, err)
	text := authorityUntil(t, "later", now.Add(400*endsDay))
	keyless := written.Object("ClusterVerifier", "", "v", "type: Cosign\ncosign: {keyless: {identities: [{issuer: i, subject: s}]}}")
	store := written.Object("ClusterTrustStore", "", "x", "type: Certificates\nsource: {vault: {address: \"https://vault.example.com\", path: pki/cert/ca, "+
		"tokenSecretKeyRef: {name: token, key: t}}}")
	token := "kind: Secret\nmetadata: {name: token, namespace: landwaiter-system}\nstringData: {t: x}"
	for name, c := range map[string]struct {
		document string
		value    external.Value
		ref      string
		want     map[time.Duration]string // by the time since the last good fetch
	}{
		"a fetch that works": {store, external.Value{Content: []byte(text), FetchedAt: now}, "ClusterTrustStore x", map[time.Duration]string{0: "!NotExpiring"}},
		"a fetch that fails": {store, external.Value{Content: []byte(text), FetchedAt: now, KeptUntil: now.Add(endsDay), Err: errors.New("down")},
			"ClusterTrustStore x",
			map[time.Duration]string{time.Hour: "!NotExpiring", 2 * time.Hour: "Expiring", 25 * time.Hour: "Expired"}},
		"a role of a repository": {keyless,
			external.Value{Content: root, FetchedAt: now,
				Roles: []external.TUFRole{{Name: "root", Version: 3, Expires: now.Add(40 * endsDay)}, {Name: "timestamp", Version: 9, Expires: now}}}, "ClusterVerifier v",
			map[time.Duration]string{11 * endsDay: "Expired"}}, // the fixture's authorities live for hours
	} {
		t.Run(name, func(t *testing.T) {
			o := written.Objects(t, token, c.document)
			fetched := external.Fetched{}
			for _, sources := range resolve.Group(o).Externals() {
				for _, source := range sources {
					fetched[source] = c.value
				}
			}
			require.Len(t, fetched, 1)
			snapshot, _ := resolve.Empty(resolve.Outside{Registry: func(registry.Access) verify.Registry { return &written.NoRegistry{} },
				Revocation: func(verify.Namespace) http.RoundTripper { return http.DefaultTransport }}).Next(resolve.Group(o), fetched)
			report := written.ReportOn(t, snapshot, c.ref)
			for after, want := range c.want {
				condition, ok := report.ExpiresSoon(now.Add(after))
				require.True(t, ok)
				require.Equal(t, want, written.Short(condition), "%s: %s", after, condition.Message)
			}
			if c.ref == "ClusterVerifier v" {
				condition, _ := report.ExpiresSoon(now.Add(11 * endsDay))
				require.Contains(t, condition.Message, "TUF role root, version 3 expires at")
			}
		})
	}
}

func TestTheFirstEndIsOneThatMatters(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		list []trust.End
		want time.Duration
		none bool
	}{
		"nothing":            {none: true},
		"the earlier":        {list: []trust.End{{At: now.Add(2 * time.Hour)}, {At: now.Add(time.Hour)}}, want: time.Hour},
		"one that is over":   {list: []trust.End{{At: now.Add(-time.Hour)}, {At: now.Add(time.Hour)}}, want: -time.Hour},
		"one with successor": {list: []trust.End{{At: now.Add(-time.Hour), Successor: now.Add(time.Hour)}, {At: now.Add(time.Hour)}}, want: time.Hour},
		"not yet announced":  {list: []trust.End{{At: now.Add(time.Hour), Notice: time.Minute}, {At: now.Add(2 * time.Hour)}}, want: 2 * time.Hour},
	} {
		first, ok := compile.Ends{List: c.list}.First(now)
		require.Equal(t, !c.none, ok, name)
		if ok {
			require.Equal(t, now.Add(c.want), first, name)
		}
	}
}

func TestRevocationListsAreForVerifiersThatCheck(t *testing.T) {
	now := time.Now()
	ca, err := fixture.NewAuthorityWith("ca", fixture.CertificateOptions{NotAfter: now.Add(400 * endsDay)})
	require.NoError(t, err)
	list, err := ca.RevocationListPEM(fixture.ListOptions{ThisUpdate: now.Add(-7 * endsDay), NextUpdate: now.Add(endsDay)})
	require.NoError(t, err)
	stores := []string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "ca", inline("Certificates", string(ca.CertificatePEM))),
		written.Object("TrustStore", "team-a", "lists", inline("RevocationLists", string(list)))}
	verifier := func(more string) []string {
		return append(stores,
			written.Object("Verifier", "team-a", "v", "type: Notation\nnotation: {trustStoreRefs: [{name: ca}], trustedIdentities: [\"*\"], "+more+"}"))
	}
	for name, c := range map[string]struct{ more, want, says string }{
		"checks":         {"revocation: Check, revocationListTrustStoreRefs: [{name: lists}]", "Valid", ""},
		"does not check": {"revocation: Ignore, revocationListTrustStoreRefs: [{name: lists}]", "!Invalid", "revocationListTrustStoreRefs needs revocation: Check"},
		"names a root": {"revocation: Check, revocationListTrustStoreRefs: [{name: ca}]", "!Invalid",
			"revocationListTrustStoreRefs[0]: TrustStore team-a/ca is of type Certificates, it must be of type RevocationLists"},
		"names nothing":   {"revocation: Check, revocationListTrustStoreRefs: [{name: none}]", "!NotFound", "does not exist"},
		"lists as a root": {"revocation: Check, timestamps: {trustStoreRefs: [{name: lists}]}", "!Invalid", "it must be of type TimestampAuthorities"},
	} {
		snapshot, _ := written.Compiled(written.AsRead(t, written.Objects(t, verifier(c.more)...)))
		report := written.ReportOn(t, snapshot, "Verifier team-a/v")
		require.Equal(t, c.want, written.Short(report.Ready), "%s: %s", name, report.Ready.Message)
		require.Contains(t, report.Ready.Message, c.says, name)
	}
	snapshot, _ := written.Compiled(written.Objects(t, verifier("revocation: Check, revocationListTrustStoreRefs: [{name: lists}]")...))
	store := written.ReportOn(t, snapshot, "TrustStore team-a/lists")
	require.Equal(t, "InForce", written.Short(store.Effective), store.Effective.Message)
	condition, ok := store.ExpiresSoon(now)
	require.True(t, ok)
	require.Equal(t, "Expiring", written.Short(condition), condition.Message)
	require.Contains(t, condition.Message, "revocation list of")
}
