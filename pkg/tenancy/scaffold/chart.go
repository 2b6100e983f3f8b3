package scaffold

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Chart is the source of a Helm chart.
type Chart struct {
	// URL of a Helm repository (https://…), of the chart itself in a registry (oci://…), or
	// of a Git repository with the chart in charts/NAME (https://….git).
	URL string `json:"url,omitempty"`
	// Version of the chart; a range is possible.
	Version string `json:"version,omitempty"`
	// Digest is the only content that Flux installs, as sha256:…, for a chart in a registry.
	Digest string `json:"digest,omitempty"`
	// Verify defines who must have signed a chart in a registry.
	Verify ChartVerify `json:"verify,omitzero"`
}

// ChartVerify defines whose cosign signature Flux requires of a chart: a key's, or an
// identity's. The zero value requires none.
type ChartVerify struct {
	// Secret in flux-system has the public key, in an entry whose name ends with .pub.
	Secret string `json:"secret,omitempty"`
	// Issuer and Subject are regular expressions that the certificate of a signature without a
	// key must match.
	Issuer  string `json:"issuer,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// releaseKey is the Secret with the public key of Landwaiter's releases.
const releaseKey = "landwaiter-cosign"

const (
	chartURL     = `^(https|oci)://[A-Za-z0-9][A-Za-z0-9.:-]*(/[A-Za-z0-9._-]+)*/?$`
	chartVersion = `^[0-9A-Za-z.*<>=^~ +-]{1,64}$`
	chartDigest  = `^$|^sha256:[0-9a-f]{64}$`
	// anchored is a regular expression that matches the whole text. Otherwise, Flux matches any
	// part.
	anchored = `^$|^\^.{1,510}\$$`
)

// bound reports whether Flux refuses all other content.
func (c Chart) bound() bool { return c.Digest != "" || c.Verify != (ChartVerify{}) }

// check refuses values that Flux could not use, or would not enforce. name is the chart's.
func (c Chart) check(name string) error {
	const objectName = `^$|^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`
	for _, field := range []struct{ field, value, pattern, example string }{
		{"url", c.URL, chartURL, "https://charts.example.com or oci://registry.example.com/charts/" + name},
		{"version", c.Version, chartVersion, LandwaiterVersion},
		{"digest", c.Digest, chartDigest, "sha256: and 64 hexadecimal digits, as helm push prints"},
		{"verify.secret", c.Verify.Secret, objectName, releaseKey},
		{"verify.issuer", c.Verify.Issuer, anchored, `^https://token\.actions\.githubusercontent\.com$, from ^ to $`},
		{"verify.subject", c.Verify.Subject, anchored, `^https://github\.com/OWNER/REPOSITORY/\.github/workflows/release\.yml@refs/tags/v.*$, from ^ to $`},
	} {
		if !regexp.MustCompile(field.pattern).MatchString(field.value) {
			return fmt.Errorf("%s.%s: %q cannot be used; give %s", name, field.field, field.value, field.example)
		}
	}
	if !isVersion(c.Version) {
		return fmt.Errorf("%s.version: %q is neither a version nor a range; give %s", name, c.Version, LandwaiterVersion)
	}
	for field, expression := range map[string]string{"issuer": c.Verify.Issuer, "subject": c.Verify.Subject} {
		if _, err := regexp.Compile(expression); err != nil {
			return fmt.Errorf("%s.verify.%s: %w", name, field, err)
		}
	}
	switch {
	case c.bound() && !strings.HasPrefix(c.URL, "oci://"):
		return fmt.Errorf("%s.digest and %s.verify mean nothing for %s: give a chart in a registry, oci://…", name, name, c.URL)
	case (c.Verify.Issuer == "") != (c.Verify.Subject == ""):
		return fmt.Errorf("%s.verify: issuer and subject belong together: set both", name)
	case c.Verify.Issuer != "" && c.Verify.Secret != "":
		return fmt.Errorf("%s.verify: set either secret, or issuer and subject", name)
	}
	return nil
}

// verify returns the field verify of an OCIRepository, nil if no signature is required.
func (v ChartVerify) verify() object {
	switch {
	case v.Secret != "":
		return object{"provider": "cosign", "secretRef": object{"name": v.Secret}}
	case v.Issuer != "":
		return object{"provider": "cosign", "matchOIDCIdentity": []object{{"issuer": v.Issuer, "subject": v.Subject}}}
	}
	return nil
}

// chartSource returns the source of a chart, and the fields of a HelmRelease that name it.
func chartSource(chart Chart, name, namespace, chartName string) (source, from object) {
	if strings.HasPrefix(chart.URL, "oci://") {
		ref := object{"tag": strings.ReplaceAll(chart.Version, "+", "_")} // as in Helm's pushes: tags have no +
		if !exactVersion.MatchString(chart.Version) {
			ref = object{"semver": chart.Version}
		}
		if chart.Digest != "" {
			ref["digest"] = chart.Digest // then, the tag is for people only
		}
		spec := object{"interval": "1h", "url": strings.TrimSuffix(chart.URL, "/"), "ref": ref,
			"layerSelector": object{"mediaType": chartLayer, "operation": "copy"}}
		if verify := chart.Verify.verify(); verify != nil {
			spec["verify"] = verify
		}
		return object{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": named(namespace, name), "spec": spec},
			object{"chartRef": object{"kind": "OCIRepository", "name": name}}
	}
	if strings.HasSuffix(chart.URL, ".git") {
		return object{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": named(namespace, name),
				"spec": object{"interval": "5m", "url": chart.URL, "ref": gitRef(chart.Version)}},
			object{"chart": object{"spec": object{"chart": "./charts/" + chartName, "reconcileStrategy": "Revision",
				"sourceRef": object{"kind": "GitRepository", "name": name}}}}
	}
	return object{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository", "metadata": named(namespace, name),
			"spec": object{"interval": "1h", "url": chart.URL}},
		object{"chart": object{"spec": object{"chart": chartName, "version": chart.Version,
			"sourceRef": object{"kind": "HelmRepository", "name": name}}}}
}

// chartLayer is the media type of a chart in a registry.
const chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// gitRef is the tag of a version, or the branch main if any version will do.
func gitRef(version string) object {
	switch {
	case exactVersion.MatchString(version):
		return object{"tag": version}
	case version == "" || version == "*":
		return object{"branch": "main"}
	}
	return object{"semver": version}
}

// comparator is a part of a range that matches the same stable versions if it ends with a pre-release.
const comparator = `(?:(?:[~^]|>=|<) ?v?[0-9]+(?:\.(?:[0-9]+|[xX*])){0,2}|v?[0-9]+(?:\.[0-9]+)?\.[xX*])`

var (
	comparators = regexp.MustCompile(comparator)
	plainRange  = regexp.MustCompile(`^(?:` + comparator + `(?:[, ]+| *\|\| *|$))+$`)
)

// preReleases returns the range that also includes pre-releases. It does not change a single version, a
// range with its own pre-releases, and a range that would then include other stable versions, such as
// >2.0.0. A source in Git without a version follows a branch, which has none.
func (c Chart) preReleases() string {
	switch {
	case c.Version == "*" && !strings.HasSuffix(c.URL, ".git"):
		return ">=0.0.0-0"
	}
	version := upTo.ReplaceAllStringFunc(hyphens.ReplaceAllString(c.Version, ">=$1 <=$2"), func(last string) string {
		found := upTo.FindStringSubmatch(last)
		number, err := strconv.ParseUint(found[2], 10, 32)
		if err != nil {
			return last
		}
		return "<" + found[1] + strconv.FormatUint(number+1, 10)
	})
	if plainRange.MatchString(version) {
		return comparators.ReplaceAllString(version, "$0-0")
	}
	return c.Version
}

// stableOnly reports whether the version is a range without pre-releases.
func (c Chart) stableOnly() bool {
	return c.Version != "*" && c.Version != "" && !exactVersion.MatchString(c.Version) &&
		!regexp.MustCompile(`[0-9xX*]-[0-9A-Za-z]`).MatchString(c.Version)
}

var (
	// hyphens matches the range 1.2 - 1.4, from one version to another.
	hyphens = regexp.MustCompile(`(v?[0-9]+(?:\.[0-9]+){0,2}) +- +(v?[0-9]+(?:\.[0-9]+){0,2})`)
	// upTo matches <=1.4, which is <1.5 if only stable versions count. The last number is the second group.
	upTo = regexp.MustCompile(`<= ?(v?(?:[0-9]+\.){0,2})([0-9]+)\b`)
)

// isVersion reports whether Flux reads a text as a version, or as a range of them.
func isVersion(text string) bool {
	const part = `(?:\d+|[xX*])`
	const one = `(?:~>?|\^|[<>!]=?|=[<>]?)? *v?` + part + `(?:\.` + part + `){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?`
	return regexp.MustCompile(`^ *` + one + `(?:(?: *, *| *\|\| *| +- +| +)` + one + `)* *$`).MatchString(text)
}

var exactVersion = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)

// chartSources finds charts of the platform that anyone who can write to the registry can
// replace.
func (c *checker) chartSources(all *closure) {
	for _, o := range all.objects {
		if !isFlux(o.Unstructured, "OCIRepository") || o.GetNamespace() != fluxNamespace {
			continue
		}
		layer, _, _ := unstructured.NestedString(o.Object, "spec", "layerSelector", "mediaType")
		c.chartSigners(o.folder, o.Unstructured)
		digest, _, _ := unstructured.NestedString(o.Object, "spec", "ref", "digest")
		_, signed, _ := unstructured.NestedMap(o.Object, "spec", "verify")
		if layer != chartLayer || digest != "" || signed {
			continue
		}
		fix := "set spec.ref.digest or spec.verify"
		if name := o.GetName(); name == "gatekeeper" || name == "landwaiter" {
			fix = fmt.Sprintf("run platform init with --set %s.version=VERSION --set %s.digest=DIGEST, as helm push prints it, or with --set "+
				"%s.verify.secret=SECRET", name, name, name)
		}
		c.report(resource.Warning, "ChartNotVerified", c.of(o.folder, o.Unstructured),
			"%s: anybody who can write to the registry can replace the chart, which Flux installs with all permissions: %s",
			identity(o.Unstructured), fix)
	}
}

// chartSigners finds identities for charts that strangers also have, or nobody.
func (c *checker) chartSigners(folder string, o *unstructured.Unstructured) {
	if c.options.Signer == nil {
		return
	}
	identities, _, _ := unstructured.NestedSlice(o.Object, "spec", "verify", "matchOIDCIdentity")
	for i, each := range identities {
		fields, _ := each.(map[string]any)
		issuer, _ := fields["issuer"].(string)
		subject, _ := fields["subject"].(string)
		if id, wrong := c.options.Signer(issuer, subject); wrong != "" {
			c.report(resource.Warning, id, c.of(folder, o), "%s: spec.verify.matchOIDCIdentity[%d]: %s", identity(o), i, wrong)
		}
	}
}
