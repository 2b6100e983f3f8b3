package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// Identifiers of a release's provenance (SLSA provenance v1, "Schema"). The last two are
// sections of the page that explains them.
const (
	provenanceType = "https://slsa.dev/provenance/v1"
	buildType      = homepage + "/blob/main/docs/contribute/release.md#provenance"
	builderID      = homepage + "/blob/main/docs/contribute/release.md#make-a-release"
)

// describeBuild returns the provenance of artifacts: an in-toto statement v1 with a SLSA
// provenance v1 predicate, as JSON. It contains no time, so that a rebuild gives the same bytes.
func describeBuild(artifacts []*intoto.ResourceDescriptor, compiler string, o origin) ([]byte, error) {
	source := &intoto.ResourceDescriptor{Uri: "git+" + homepage}
	if o.revision != "" {
		source.Digest = map[string]string{intoto.AlgorithmGitCommit.String(): o.revision}
	}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: buildType,
			ExternalParameters: &structpb.Struct{Fields: map[string]*structpb.Value{
				"source": structpb.NewStringValue(source.Uri), "version": structpb.NewStringValue(o.version)}},
			InternalParameters: &structpb.Struct{Fields: map[string]*structpb.Value{
				"go": structpb.NewStringValue(compiler)}},
			ResolvedDependencies: []*intoto.ResourceDescriptor{source},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: builderID}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, fmt.Errorf("describe the build: %w", err)
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, Subject: artifacts, PredicateType: provenanceType,
		Predicate: &structpb.Struct{}}
	encoded, err := protojson.Marshal(predicate)
	if err == nil {
		err = protojson.Unmarshal(encoded, statement.Predicate)
	}
	if err != nil {
		return nil, fmt.Errorf("describe the build: %w", err)
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("describe the build: %w", err)
	}
	if encoded, err = protojson.Marshal(statement); err != nil {
		return nil, fmt.Errorf("describe the build: %w", err)
	}
	var out bytes.Buffer // the JSON of protobuf varies its spaces on purpose
	if err := json.Indent(&out, encoded, "", "  "); err != nil {
		return nil, fmt.Errorf("describe the build: %w", err)
	}
	return append(out.Bytes(), '\n'), nil
}

// artifact describes one file of a release.
func artifact(name, sum string) *intoto.ResourceDescriptor {
	return &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{intoto.AlgorithmSHA256.String(): sum}}
}

// imageArtifacts describes an index of a layout and the image of each platform, since a
// cluster may pin either.
func (b blobs) imageArtifacts(index ocispec.Descriptor, tag string) ([]*intoto.ResourceDescriptor, error) {
	var read ocispec.Index
	if err := json.Unmarshal(b[index.Digest], &read); err != nil {
		return nil, fmt.Errorf("read the index of %s: %w", tag, err)
	}
	name := product + ":" + tag
	all := []*intoto.ResourceDescriptor{artifact(name, index.Digest.Encoded())}
	for _, image := range read.Manifests {
		all = append(all, artifact(name+" "+image.Platform.OS+"/"+image.Platform.Architecture, image.Digest.Encoded()))
	}
	return all, nil
}
