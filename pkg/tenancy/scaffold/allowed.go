package scaffold

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// sourceFields are the fields of Flux objects that name their source.
func sourceFields() [][]string {
	return [][]string{{"spec", "sourceRef"}, {"spec", "chartRef"}, {"spec", "chart", "spec", "sourceRef"}}
}

// sources finds sources that the cluster does not have.
func (c *checker) sources(at string, o *unstructured.Unstructured, present map[string]bool) {
	for _, fields := range sourceFields() {
		kind, name, namespace := reference(o, fields...)
		switch {
		case name == "":
		case !present[kind+" "+namespace+"/"+name]:
			c.find("SourceMissing", at, "%s: %s names %s %s/%s, which is not there%s", identity(o), strings.Join(fields, "."), kind, namespace, name,
				sharedHint(namespace, name))
		case namespace != o.GetNamespace() && c.settings != nil && c.settings.Layout != LayoutDemo && !c.settings.SharedSource:
			c.find("SourceForeign", at, "%s: %s names %s of namespace %s, which Flux's lockdown refuses: name a source in %s", identity(o),
				strings.Join(fields, "."), kind+" "+name, namespace, o.GetNamespace())
		}
	}
}

// sharedHint says what to do about the source that tenants of flux-multitenant-demo share.
func sharedHint(namespace, name string) string {
	if namespace != onboard.DemoNamespace || name != onboard.DemoSource {
		return ""
	}
	return ": platform bootstrap writes it; add it to the tree, or give the Tenant a source of its own, without --shared-source"
}

// allowedSources finds sources of Flux that the tree's own constraints of kind FluxAllowedSources deny: one
// object that Gatekeeper denies stops its whole Kustomization. It only checks the beginning of URLs.
func (c *checker) allowedSources(all *closure) {
	for _, rule := range all.objects {
		if rule.GetKind() != "FluxAllowedSources" || rule.GroupVersionKind().Group != constraintGroup {
			continue
		}
		severity := resource.Warning
		if action, _, _ := unstructured.NestedString(rule.Object, "spec", "enforcementAction"); action == "" || action == "deny" {
			severity = resource.Error
		}
		excluded, _, _ := unstructured.NestedStringSlice(rule.Object, "spec", "match", "excludedNamespaces")
		for _, o := range all.objects {
			fields := prefixesFor(o.Unstructured)
			url, _, _ := unstructured.NestedString(o.Object, "spec", "url")
			if fields == nil || url == "" && o.GetKind() != "Bucket" ||
				slices.ContainsFunc(excluded, func(pattern string) bool { return constraint.MatchesName(pattern, o.GetNamespace()) }) {
				continue
			}
			var prefixes []string
			for _, field := range fields {
				listed, _, _ := unstructured.NestedStringSlice(rule.Object, "spec", "parameters", field)
				prefixes = append(prefixes, listed...)
			}
			if o.GetKind() == "Bucket" {
				if host, bucket := bucketOf(o.Unstructured); !listedBucket(prefixes, host, bucket) {
					c.report(severity, "SourceNotAllowed", c.of(o.folder, o.Unstructured),
						"%s: the bucket %s at %s is not in bucketEndpoints of constraint %s: run platform init with --set "+
							"allowedSources=https://HOST/BUCKET/, or fetch from elsewhere",
						identity(o.Unstructured), bucket, host, rule.GetName())
				}
				continue
			}
			switch below := func(prefix string) bool { return strings.HasPrefix(strings.TrimSuffix(url, "/")+"/", prefix) }; {
			case !slices.ContainsFunc(prefixes, below):
				c.report(severity, "SourceNotAllowed", c.of(o.folder, o.Unstructured),
					"%s: spec.url %s is below no prefix of constraint %s (%s): run platform init with --set allowedSources=PREFIX, or fetch "+
						"from elsewhere",
					identity(o.Unstructured), url, rule.GetName(), strings.Join(fields, ", "))
			case oddURL.MatchString(url):
				c.report(severity, "SourceNotAllowed", c.of(o.folder, o.Unstructured),
					"%s: spec.url %s has a part that servers may read differently, so constraint %s denies it: write it without %%, \\, ?, #, . and .., "+
						"and at Azure DevOps with the ID of a project whose name has spaces",
					identity(o.Unstructured), url, rule.GetName())
			}
		}
	}
}

// prefixesFor names the parameters of FluxAllowedSources for a source; nil for all other objects.
func prefixesFor(o *unstructured.Unstructured) []string {
	if o.GroupVersionKind().Group != "source.toolkit.fluxcd.io" {
		return nil
	}
	switch o.GetKind() {
	case "GitRepository":
		return []string{"gitPrefixes"}
	case "HelmRepository":
		return []string{"helmPrefixes", "ociPrefixes"}
	case "OCIRepository":
		return []string{"ociPrefixes"}
	case "Bucket":
		return []string{"bucketEndpoints"}
	}
	return nil
}

// oddURL matches URLs that the template of FluxAllowedSources denies, in addition to those
// with empty parts.
var oddURL = regexp.MustCompile(`[%\\?#\s]|(^|/)\.{1,2}(/|$)`)

// bucketOf returns the address of a Bucket. The provider of Google ignores the endpoint.
func bucketOf(o *unstructured.Unstructured) (host, bucket string) {
	host, _, _ = unstructured.NestedString(o.Object, "spec", "endpoint")
	bucket, _, _ = unstructured.NestedString(o.Object, "spec", "bucketName")
	if provider, _, _ := unstructured.NestedString(o.Object, "spec", "provider"); provider == "gcp" {
		host = "storage.googleapis.com"
	}
	return strings.TrimPrefix(host, "https://"), bucket
}

// listedBucket reports whether entries of bucketEndpoints have a bucket, as the template reads them.
func listedBucket(entries []string, host, bucket string) bool {
	return !strings.Contains(host, "/") && slices.ContainsFunc(entries, func(entry string) bool {
		entry = strings.TrimSuffix(strings.TrimPrefix(entry, "https://"), "/")
		return entry == host || entry == host+"/"+bucket
	})
}
