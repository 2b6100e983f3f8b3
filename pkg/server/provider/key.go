package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/maypok86/otter/v2"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// target is the image and namespace of a key. Keys with the same target share one
// decision.
type target struct {
	namespace verify.Namespace
	ref       image.Reference // zero for images that mutation leaves unchanged
}

// filledInLater reports whether a webhook that runs after Gatekeeper's mutation, or a controller, replaces an
// image: Istio's injector replaces "auto", and OpenShift's image triggers a blank. Verification judges the
// replacement, or denies the placeholder.
func filledInLater(image string) bool { return image == "auto" || strings.TrimSpace(image) == "" }

// parser has the signature of [image.Parse].
type parser func(string) (image.Reference, error)

// remembering returns image.Parse with a cache: requests name the same few images repeatedly,
// and parsing one takes as long as recalling its verdict.
func remembering() parser {
	known := otter.Must(&otter.Options[string, image.Reference]{MaximumSize: maxParsed})
	return func(s string) (image.Reference, error) {
		if ref, ok := known.GetIfPresent(s); ok {
			return ref, nil
		}
		ref, err := image.Parse(s)
		if err == nil {
			known.Set(s, ref)
		}
		return ref, err
	}
}

// Operation is the kind of a request.
type Operation string

// The operations of Gatekeeper's external data.
const (
	OperationVerify Operation = "verify"
	OperationMutate Operation = "mutate"
)

// endpoint is a parsed URL path.
type endpoint struct {
	name      string // for metrics and logs; one of a fixed set
	operation Operation
	tagged    bool             // keys may begin with one namespace tag
	brief     bool             // answers have a [brief] instead of a [value]
	source    Source           // empty: admission
	namespace verify.Namespace // for keys without a tag
}

const (
	unknownEndpoint = "unknown"
	ratifyPrefix    = "/ratify/gatekeeper"
	tenantPrefix    = "/v1/namespaces/"
	verdictPath     = "/v1/verdict"
	auditPath       = "/v1/audit/verify"
)

// endpointNames returns the names of all endpoints.
func endpointNames() []string {
	return []string{"verdict", "verify", "mutate", "namespace_verify", "namespace_mutate", "ratify_verify", "ratify_mutate", "audit_verify",
		unknownEndpoint}
}

// parsePath returns the endpoint of an escaped URL path. It compares raw paths: cleaning or
// unescaping would add a second spelling, and a redirect would make Gatekeeper ask twice.
func parsePath(path string) (endpoint, error) {
	if tenant, scoped := strings.CutPrefix(path, tenantPrefix); scoped {
		return parseTenantPath(tenant)
	}
	switch path {
	case verdictPath:
		return endpoint{name: "verdict", operation: OperationVerify, tagged: true, brief: true}, nil
	case auditPath:
		return endpoint{name: "audit_verify", operation: OperationVerify, tagged: true, source: SourceAudit}, nil
	}
	prefix := ""
	if rest, compatible := strings.CutPrefix(path, ratifyPrefix); compatible {
		prefix, path = "ratify_", rest
	}
	switch path {
	case "/v1/verify":
		return endpoint{name: prefix + "verify", operation: OperationVerify, tagged: true}, nil
	case "/v1/mutate":
		return endpoint{name: prefix + "mutate", operation: OperationMutate}, nil
	}
	return endpoint{name: unknownEndpoint}, errors.New("there is no such path: use /v1/verdict, /v1/verify, /v1/audit/verify, /v1/mutate, " +
		"/v1/namespaces/{namespace}/verify or /v1/namespaces/{namespace}/mutate; for Ratify's templates, /ratify/gatekeeper/v1/verify or " +
		"/ratify/gatekeeper/v1/mutate")
}

func parseTenantPath(rest string) (endpoint, error) {
	name, text, _ := strings.Cut(rest, "/")
	operation := Operation(text)
	if operation != OperationVerify && operation != OperationMutate {
		return endpoint{name: unknownEndpoint}, errors.New("there is no such path below /v1/namespaces/{namespace}: use verify or mutate")
	}
	e := endpoint{name: "namespace_" + text, operation: operation}
	namespace, err := verify.ParseNamespace(name)
	if err != nil {
		return e, fmt.Errorf("the path: %w", err)
	}
	e.namespace = namespace
	return e, nil
}

// parseKey parses a key of this endpoint. A user wrote the image in it, so it reads at most
// one leading tag, which the template adds, as a namespace, and only on endpoints for such
// templates. With an error, the target has the namespace if it is known, for the log.
func (e endpoint) parseKey(key string, parse parser) (target, error) {
	if e.tagged {
		return parseTaggedKey(key, parse)
	}
	if strings.Contains(key, "[") {
		return target{}, fmt.Errorf("the key %s contains %q: this endpoint takes images without a namespace tag", shown(key), "[")
	}
	if e.operation == OperationMutate && filledInLater(key) {
		return target{namespace: e.namespace}, nil
	}
	ref, err := parse(key)
	return target{namespace: e.namespace, ref: ref}, err
}

// parseTaggedKey parses "[namespace]image" or "image". An empty tag is an error, and does not
// mean the cluster: a template that lost the namespace would write it.
func parseTaggedKey(key string, parse parser) (target, error) {
	rest, tagged := strings.CutPrefix(key, "[")
	if !tagged {
		ref, err := parse(key)
		return target{namespace: verify.Cluster, ref: ref}, err
	}
	name, rest, closed := strings.Cut(rest, "]")
	if !closed {
		return target{}, fmt.Errorf("the key %s has a namespace tag without an end: write [namespace]image", shown(key))
	}
	namespace, err := verify.ParseNamespace(name)
	if err != nil {
		return target{}, fmt.Errorf("the tag of key %s: %w", shown(key), err)
	}
	if strings.HasPrefix(rest, "[") {
		return target{namespace: namespace},
			fmt.Errorf("the key %s has a second %q: an image must not bring a namespace tag of its own, and an IPv6 address cannot be a "+
				"registry host", shown(key), "[")
	}
	ref, err := parse(rest)
	return target{namespace: namespace, ref: ref}, err
}
