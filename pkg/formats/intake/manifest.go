package intake

import (
	"encoding/json"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Docker's media types of manifests, apart from those of OCI.
const (
	mediaTypeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	mediaTypeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// IsIndex reports whether mediaType is that of an index.
func IsIndex(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageIndex || mediaType == mediaTypeDockerList
}

// IsDocument reports whether a media type is that of an index or an image manifest.
func IsDocument(mediaType string) bool { return IsIndex(mediaType) || isManifest(mediaType) }

// Kind returns the media type of an index or an image manifest by its content alone, as an OCI type if the
// document states none, and "" for anything else. It checks nothing else. The error is about a limit
// ([IsLimit]).
func Kind(content []byte) (string, error) {
	err := List(content)
	if IsLimit(err) {
		return "", err
	}
	var members struct {
		MediaType         *string
		Manifests, Layers json.RawMessage
	}
	if err != nil || json.Unmarshal(content, &members) != nil {
		return "", nil //nolint:nilerr // then it is neither
	}
	switch stated := members.MediaType; {
	case stated != nil && IsDocument(*stated):
		return *stated, nil
	case stated != nil && *stated != "":
	case members.Manifests != nil && members.Layers == nil:
		return ocispec.MediaTypeImageIndex, nil
	case members.Layers != nil && members.Manifests == nil:
		return ocispec.MediaTypeImageManifest, nil
	}
	return "", nil
}

func isManifest(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageManifest || mediaType == mediaTypeDockerManifest
}

// Manifest reads an image manifest (OCI image manifest specification). mediaType is the type
// that the registry or an index states; it may be empty.
func Manifest(content []byte, mediaType string) (ocispec.Manifest, error) {
	if err := checkDocument(content, mediaType, isManifest, "manifests"); err != nil {
		return ocispec.Manifest{}, err
	}
	if err := checkCount(content, "layers", maxLayers); err != nil {
		return ocispec.Manifest{}, err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(content, &manifest); err != nil {
		return ocispec.Manifest{}, malformed("is not a manifest")
	}
	if err := checkAnnotations(manifest.Annotations); err != nil {
		return ocispec.Manifest{}, err
	}
	for _, layer := range manifest.Layers {
		if layer.Digest.Validate() != nil || layer.Size < 0 {
			return ocispec.Manifest{}, malformed("lists a layer without a digest or size")
		}
		if err := checkAnnotations(layer.Annotations); err != nil {
			return ocispec.Manifest{}, err
		}
	}
	return manifest, nil
}

// Index reads an image index (OCI image index specification) of 1 to limit manifests, none of
// them an index. mediaType is the type that the registry states.
func Index(content []byte, mediaType string, limit int) ([]ocispec.Descriptor, error) {
	if !IsIndex(mediaType) {
		return nil, malformed("is not an index")
	}
	if err := checkDocument(content, mediaType, IsIndex, "config", "layers", "fsLayers", "blobs"); err != nil {
		return nil, err
	}
	if err := checkCount(content, "manifests", limit); err != nil {
		return nil, err
	}
	var index ocispec.Index
	if err := json.Unmarshal(content, &index); err != nil {
		return nil, malformed("is not an index")
	}
	if len(index.Manifests) == 0 {
		return nil, pastLimit("has 0 manifests, it must have 1 to %d", limit)
	}
	for _, manifest := range index.Manifests {
		if manifest.Digest.Validate() != nil || manifest.Size < 0 || !isManifest(manifest.MediaType) {
			return nil, malformed("lists an entry that is not a manifest")
		}
	}
	return index.Manifests, nil
}

// checkCount refuses a document whose list of this name is too long, before reading it.
func checkCount(content []byte, name string, limit int) error {
	var lists map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(content, &lists) != nil || len(lists[name]) > 0 && json.Unmarshal(lists[name], &list) != nil {
		return malformed("has %s that are not a list", name)
	}
	if len(list) > limit {
		return pastLimit("has %d %s, the limit is %d", len(list), name, limit)
	}
	return nil
}

// checkDocument refuses a document that two readers could interpret differently: one with
// duplicate names, with a name that only encoding/json reads as a name of the specification,
// with a media type other than stated, or with members of another kind of document. is
// reports whether a media type is of the wanted kind.
func checkDocument(content []byte, mediaType string, is func(string) bool, foreign ...string) error {
	if err := scanJSON(content, jsonLimits{depth: maxDepth, values: maxManifestValues, members: maxMembers}); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(content, &members); err != nil || members == nil {
		return malformed("is not a JSON object")
	}
	known := []string{"schemaVersion", "mediaType", "artifactType", "config", "layers", "subject", "annotations", "manifests"}
	for name := range members {
		for _, other := range foreign {
			if fold(name) == fold(other) {
				return malformed("has %q, which a document of its kind does not have", other)
			}
		}
		if !slices.Contains(known, name) && slices.ContainsFunc(known, func(other string) bool { return fold(name) == fold(other) }) {
			return malformed("has a name of the specification in another case")
		}
	}
	var stated struct {
		SchemaVersion int    `json:"schemaVersion"`
		MediaType     string `json:"mediaType"`
	}
	switch err := json.Unmarshal(content, &stated); {
	case err != nil || stated.SchemaVersion != 2:
		return malformed("does not have the schema version 2")
	case mediaType != "" && !is(mediaType), stated.MediaType != "" && !is(stated.MediaType):
		return malformed("is of another kind than its media type says")
	case mediaType != "" && stated.MediaType != "" && mediaType != stated.MediaType:
		return malformed("states another media type than it was listed with")
	}
	return nil
}

func checkAnnotations(annotations map[string]string) error {
	if n := len(annotations); n > maxAnnotations {
		return pastLimit("has %d annotations on one descriptor, the limit is %d", n, maxAnnotations)
	}
	for name, value := range annotations {
		if len(name)+len(value) > maxAnnotation {
			return pastLimit("has an annotation of %d bytes, the limit is %d", len(name)+len(value), maxAnnotation)
		}
	}
	return nil
}
