package check

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Findings about Gatekeeper's Provider objects.
const (
	ProviderMissing = "ProviderMissing"
	ProviderTimeout = "ProviderTimeout"
	ProviderURL     = "ProviderURL"
	ProviderCA      = "ProviderCA"

	CertificateContested = "CertificateContested"
)

// verdictPath is the path of the Provider that constraints should name.
const verdictPath = "/v1/verdict"

// provider is one Provider object for Landwaiter.
type provider struct {
	target
	url      string
	seconds  int
	bundle   []byte
	kept     bool // by Landwaiter, which reverts changes
	verifies bool // a constraint names it
}

// path is the path of its URL.
func (p provider) path() string {
	parsed, err := url.Parse(p.url)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(parsed.Path, "/")
}

func (p provider) mutates() bool { return strings.HasSuffix(p.path(), "/mutate") }

// ours returns Landwaiter's Provider objects: those that it manages, and those that
// constraints name.
func (v *view) ours() []provider {
	kept, verifies := map[string]bool{}, map[string]bool{}
	for _, c := range v.Constraints {
		for _, name := range constraintProviders(&c) {
			verifies[name] = true
		}
	}
	for _, use := range v.serve.flags("provider-object") {
		name, _, _ := strings.Cut(use.value, "=")
		kept[name] = true
	}
	var all []provider
	for _, object := range v.Providers {
		p := provider{target: target{policy.ObjectRef{Kind: "Provider", Name: object.GetName()}, "externaldata.gatekeeper.sh"},
			kept: kept[object.GetName()], verifies: verifies[object.GetName()]}
		if !p.kept && !p.verifies {
			continue
		}
		p.url, _, _ = unstructured.NestedString(object.Object, "spec", "url")
		timeout, _, _ := unstructured.NestedInt64(object.Object, "spec", "timeout")
		p.seconds = int(min(timeout, 1<<20))
		encoded, _, _ := unstructured.NestedString(object.Object, "spec", "caBundle")
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			p.bundle = decoded
		}
		all = append(all, p)
	}
	return all
}

// answers returns the longest time in which Landwaiter answers a Provider's requests.
func (v *view) answers(p provider) time.Duration {
	name, without := "verify", defaultVerifyTimeout
	if p.mutates() {
		name, without = "mutate", defaultMutateTimeout
	}
	parsed, err := time.ParseDuration(v.serve.named("timeout", name, without.String()))
	if err != nil {
		return without
	}
	return parsed
}

// fitting returns the timeout that a Provider needs, or its current one if that is larger.
func (v *view) fitting(p provider) int {
	return max(p.seconds, int(v.answers(p)/time.Second)+1)
}

func missingProviders(v *view, add func(resource.Finding)) {
	for i := range v.Constraints {
		c := &v.Constraints[i]
		name := constraintProviders(c)[0]
		if slices.ContainsFunc(v.Providers, func(p unstructured.Unstructured) bool { return p.GetName() == name }) {
			continue
		}
		f := resource.Finding{ID: ProviderMissing, Severity: resource.Error, Object: constraintOf(c).ObjectRef,
			Message: fmt.Sprintf("it names the Provider %s, which does not exist", name),
			Why:     "Gatekeeper cannot ask Landwaiter, so every image is denied", Command: v.upgrade("provider.create=true"),
			Keep: "the chart's value provider.create: true"}
		if slices.ContainsFunc(v.serve.flags("provider-object"), func(f flag) bool { return strings.HasPrefix(f.value, name+"=") }) {
			f.Message, f.Command = fmt.Sprintf("it names the Provider %s, which Landwaiter has not made", name), v.upgrade()
			f.Keep = fmt.Sprintf("Landwaiter makes it while it runs and has the ClusterRole %s; otherwise its log says why not",
				name+v.serve.named("cluster-role", "provider-suffix", "-provider"))
			add(f)
			continue
		}
		for _, p := range v.ours() {
			if p.kept && p.path() == verdictPath { // any other may be somebody else's
				f.Command, f.Keep = constraintOf(c).merge(map[string]any{"spec": map[string]any{"parameters": map[string]any{"provider": p.Name}}}),
					"spec.parameters.provider of the constraint"
				break
			}
		}
		add(f)
	}
}

func providerTimeout(v *view, add func(resource.Finding)) {
	for _, p := range v.ours() {
		ours := v.answers(p)
		if time.Duration(p.seconds)*time.Second > ours {
			continue
		}
		keep := fmt.Sprintf("the chart's value provider.verifyTimeoutSeconds: %d", v.fitting(p))
		if p.mutates() {
			keep = fmt.Sprintf("the chart's value provider.mutateTimeoutSeconds: %d", v.fitting(p))
		}
		add(resource.Finding{ID: ProviderTimeout, Severity: resource.Error, Object: p.ObjectRef,
			Message: fmt.Sprintf("Gatekeeper waits %d s for an answer, and Landwaiter may take %s", p.seconds, ours),
			Why:     "a slow answer comes too late: the image is denied, and users do not see why",
			Command: p.merge(map[string]any{"spec": map[string]any{"timeout": v.fitting(p)}}), Keep: keep})
	}
}

// servedPaths are the paths at which Landwaiter answers Gatekeeper.
var servedPaths = regexp.MustCompile(`^(/v1/verdict|/v1/(audit/)?(verify|mutate)|/v1/namespaces/[^/]+/(verify|mutate)|` +
	`/ratify/gatekeeper/v1/(verify|mutate))$`)

func providerURL(v *view, add func(resource.Finding)) {
	for _, p := range v.ours() {
		said, good := v.wrongURL(p)
		if said == "" {
			continue
		}
		command := p.merge(map[string]any{"spec": map[string]any{"url": good}})
		if p.kept {
			command = v.upgrade("provider.url=")
		}
		add(resource.Finding{ID: ProviderURL, Severity: resource.Error, Object: p.ObjectRef, Message: fmt.Sprintf("its url %s %s", p.url, said),
			Why: "Gatekeeper gets no usable answer there, so every image is denied", Command: command,
			Keep: "the chart's value provider.url, without a path"})
	}
}

// wrongURL says what is wrong with a Provider's URL, and which one is right.
func (v *view) wrongURL(p provider) (said, good string) {
	host := v.serve.last("service-name", "landwaiter") + "." + v.Namespace + ".svc"
	parsed, err := url.Parse(p.url)
	path := "/v1/verify"
	if err == nil && servedPaths.MatchString(p.path()) && (!p.verifies || !p.mutates()) {
		path = p.path()
	}
	good = "https://" + host + ":443" + path
	switch {
	case err != nil || parsed.Scheme != "https":
		return "is not an https URL", good
	case path != p.path():
		return "has a path at which Landwaiter does not verify", "https://" + parsed.Host + path
	case strings.HasSuffix(parsed.Hostname(), ".svc") && parsed.Hostname() != host:
		return "leads to another Service than " + host, good
	}
	return "", ""
}

func providerAuthority(v *view, add func(resource.Finding)) {
	for _, p := range v.ours() {
		said, severity := endOf(p.bundle, v.Now)
		lacks := false
		if said == "" && v.Facts != nil && v.Facts.Certificate != "" && v.leaseHeld() && !vouches(p.bundle, v.Facts.Certificate) {
			said, severity, lacks = "lacks the CA of the certificate that Landwaiter serves", resource.Error, true
		}
		if said == "" {
			continue
		}
		kept := v.serve.last("tls-secret", v.fullname()+"-tls") // the name of the Secret that the chart makes
		command := fmt.Sprintf(`kubectl get secret %s --namespace=%s --output=go-template='{"spec":{"caBundle":"{{index .data "ca.crt"}}"}}' | `+
			`kubectl patch %s --type=merge --patch-file=/dev/stdin`,
			resource.ShellWord(kept), resource.ShellWord(v.Namespace), p)
		if p.kept && len(v.serve.flags("provider-ca")) > 0 { // otherwise Landwaiter would restore the value
			command = fmt.Sprintf(`kubectl get secret %s --namespace=%s --output=go-template='{{index .data "ca.crt" | base64decode}}' > ca.crt `+
				`&& %s --set-file tls.caBundle=ca.crt`,
				resource.ShellWord(kept), resource.ShellWord(v.Namespace), v.upgrade())
			if lacks { // the existing CA may belong to another replica
				command = fmt.Sprintf(`kubectl get %s --output=go-template='{{.spec.caBundle | base64decode}}{{"\n"}}' > ca.crt && %s`, p,
					strings.Replace(command, "> ca.crt", ">> ca.crt", 1))
			}
		}
		add(resource.Finding{ID: ProviderCA, Severity: severity, Object: p.ObjectRef, Message: "its caBundle " + said, Command: command,
			Why:  "Gatekeeper then rejects Landwaiter's certificate, so every image is denied",
			Keep: "the chart's value tls.rotate: true keeps the CA up to date; otherwise set tls.caBundle"})
	}
}

// contested reports a certificate that somebody else replaces, as Landwaiter records on its Providers,
// once.
func contested(v *view, add func(resource.Finding)) {
	for _, object := range v.Providers {
		if said := object.GetAnnotations()[v1beta1.AnnotationCertificateProblem]; said != "" {
			add(resource.Finding{ID: CertificateContested, Severity: resource.Warning,
				Object: policy.ObjectRef{Kind: "Provider", Name: object.GetName()}, Message: said,
				Why:     "replicas serve the certificate that was written last, and Gatekeeper may not trust it, so images can be denied",
				Command: v.upgrade("tls.secretName=" + v.fullname() + "-own-tls"),
				Keep: "the chart's value tls.secretName; or remove the Secret from the tool that writes it, or set tls.rotate: false if that tool is " +
					"to issue the certificate"})
			return
		}
	}
}

// vouches reports whether a bundle contains the CA of a certificate.
func vouches(bundle []byte, certificate string) bool {
	served, err := trust.ParseCertificates([]byte(certificate))
	if err != nil {
		return true // nothing is known
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	for _, intermediate := range served[1:] {
		between.AddCert(intermediate)
	}
	// its expiry is another finding
	_, err = served[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between,
		CurrentTime: served[0].NotBefore.Add(served[0].NotAfter.Sub(served[0].NotBefore) / 2)})
	return err == nil
}

// endOf says when a bundle of CAs becomes unusable, empty if that is not soon.
func endOf(bundle []byte, now time.Time) (string, resource.Severity) {
	if len(bytes.TrimSpace(bundle)) == 0 {
		return "is empty", resource.Error
	}
	certificates, err := trust.ParseCertificates(bundle)
	if err != nil {
		return "cannot be read: " + err.Error(), resource.Error
	}
	var last time.Time
	for _, c := range certificates {
		if c.NotAfter.After(last) {
			last = c.NotAfter
		}
	}
	switch {
	case !last.After(now):
		return "expired on " + last.UTC().Format(time.DateOnly), resource.Error
	case !last.After(now.Add(trust.Notice)):
		return "expires on " + last.UTC().Format(time.DateOnly), resource.Warning
	}
	return "", ""
}
