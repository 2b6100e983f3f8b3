package cosign

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
	"github.com/landwaiter/landwaiter/pkg/formats/intoto"
)

// cosign writes cosignDockerHub for dockerHub into payloads.
const dockerHub, cosignDockerHub = "docker.io", "index.docker.io"

// simpleSigning is the content of a simple-signing payload (containers-signature(5)) as
// cosign writes it.
type simpleSigning struct {
	digest    string
	reference string
	optional  map[string]any
}

// parsePayload reads a simple-signing payload of cosign's type. "consumers MUST reject
// the signature if the `critical` object, or any of its subobjects, contain any member
// or data value which is unrecognized, unsupported, invalid, or in any other way
// unexpected" (containers-signature(5), "JSON processing and forward compatibility").
func parsePayload(data []byte) (simpleSigning, error) {
	if err := intake.Payload(data); err != nil {
		return simpleSigning{}, err
	}
	document, err := intoto.ParseObject(data, maxDepth)
	if err != nil {
		return simpleSigning{}, err
	}
	critical, ok := document["critical"].(map[string]any)
	if !ok || !only(document, "critical", "optional") || !only(critical, "identity", "image", "type") {
		return simpleSigning{}, errors.New(`has unknown or missing parts in "critical"`)
	}
	if critical["type"] != payload.CosignSignatureType {
		return simpleSigning{}, fmt.Errorf("is not of the type %q", payload.CosignSignatureType)
	}
	identity, identityOK := critical["identity"].(map[string]any)
	signed, signedOK := critical["image"].(map[string]any)
	if !identityOK || !signedOK || !only(identity, "docker-reference") || !only(signed, "docker-manifest-digest") {
		return simpleSigning{}, errors.New(`has unknown or missing parts in "critical"`)
	}
	p := simpleSigning{}
	var digestOK, referenceOK bool
	p.digest, digestOK = signed["docker-manifest-digest"].(string)
	p.reference, referenceOK = identity["docker-reference"].(string)
	if !digestOK || !referenceOK {
		return simpleSigning{}, errors.New(`has unknown or missing parts in "critical"`)
	}
	optional, present := document["optional"]
	if p.optional, ok = optional.(map[string]any); !ok && present && optional != nil {
		return simpleSigning{}, errors.New(`has an "optional" that is not an object`)
	}
	return p, nil
}

// rebuildPayload returns the payload that cosign signs for ref by default, if it has the
// wanted digest. It saves a fetch in the most common case.
func rebuildPayload(ref image.Reference, want digest.Digest) ([]byte, bool) {
	host := ref.Host
	if host == dockerHub {
		host = cosignDockerHub
	}
	built, err := json.Marshal(payload.SimpleContainerImage{Critical: payload.Critical{
		Identity: payload.Identity{DockerReference: host + "/" + ref.Repository},
		Image:    payload.Image{DockerManifestDigest: ref.Digest.String()},
		Type:     payload.CosignSignatureType,
	}})
	if err != nil || digest.FromBytes(built) != want {
		return nil, false
	}
	return built, true
}

// only reports whether object has no other names.
func only(object map[string]any, names ...string) bool {
	known := 0
	for _, name := range names {
		if _, ok := object[name]; ok {
			known++
		}
	}
	return known == len(object)
}
