package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// What an image is. The Dockerfile says the same for who builds with Docker:
// TestDockerfileAgreesWithTheImage holds the two together.
const (
	imageUser  = "65532:65532"
	product    = "landwaiter"
	server     = "landwaiter-server" // the program in images
	people     = "landwaiter"        // the program for people, in a release as it is
	entrypoint = "/" + server
	homepage   = "https://github.com/landwaiter/landwaiter"
	license    = "Apache-2.0"
	about      = "Decides which container images may enter a Kubernetes cluster, for OPA Gatekeeper"
)

// origin says what everything in a release is made from.
type origin struct {
	version  string    // as `landwaiter version` prints it
	revision string    // the commit; may be empty
	created  time.Time // the commit's time, or SOURCE_DATE_EPOCH
}

// labels are the labels of an image's configuration.
func (o origin) labels() map[string]string {
	return map[string]string{
		ocispec.AnnotationTitle:    product,
		ocispec.AnnotationSource:   homepage,
		ocispec.AnnotationLicenses: license,
		ocispec.AnnotationVersion:  o.version,
	}
}

// annotations are those of indexes and manifests.
func (o origin) annotations() map[string]string {
	all := o.labels()
	all[ocispec.AnnotationDescription] = about
	all[ocispec.AnnotationCreated] = o.created.Format(time.RFC3339)
	if o.revision != "" {
		all[ocispec.AnnotationRevision] = o.revision
	}
	return all
}

// blobs holds content by its digest.
type blobs map[digest.Digest][]byte

// add keeps data and describes it.
func (b blobs) add(mediaType string, data []byte) ocispec.Descriptor {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	b[d.Digest] = data
	return d
}

func (b blobs) addJSON(mediaType string, value any) ocispec.Descriptor {
	return b.add(mediaType, encode(value))
}

// encode writes the types of the OCI, which cannot fail.
func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("release: encode %T: %v", value, err))
	}
	return data
}

// addLayer keeps a compressed layer. It returns the digest of the layer before it was
// compressed too, which the configuration needs.
func (b blobs) addLayer(contents files, created time.Time) (ocispec.Descriptor, digest.Digest, error) {
	archive, err := pack(contents, true, created)
	if err != nil {
		return ocispec.Descriptor{}, "", err
	}
	compressed, err := compress(archive)
	if err != nil {
		return ocispec.Descriptor{}, "", err
	}
	return b.add(ocispec.MediaTypeImageLayerGzip, compressed), digest.FromBytes(archive), nil
}

// addImage keeps the image of one platform: the public roots and the binary, each in a
// layer of its own, so that a new version shares the first.
func (b blobs) addImage(p platform, roots, executable []byte, o origin) (ocispec.Descriptor, error) {
	config := ocispec.Image{Created: &o.created, Platform: p.oci(), RootFS: ocispec.RootFS{Type: "layers"},
		Config: ocispec.ImageConfig{User: imageUser, Entrypoint: []string{entrypoint}, Labels: o.labels()}}
	manifest := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Annotations: o.annotations()}
	for _, layer := range []struct {
		from     string
		contents files
	}{
		{"public CAs", files{rootsPath: {content: roots}}},
		{server, files{server: {content: executable, executable: true}}},
	} {
		descriptor, diff, err := b.addLayer(layer.contents, o.created)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		manifest.Layers = append(manifest.Layers, descriptor)
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, diff)
		config.History = append(config.History, ocispec.History{Created: &o.created, CreatedBy: "config/release", Comment: layer.from})
	}
	manifest.Config = b.addJSON(ocispec.MediaTypeImageConfig, config)
	descriptor := b.addJSON(ocispec.MediaTypeImageManifest, manifest)
	descriptor.Platform = &config.Platform
	return descriptor, nil
}

// addIndex keeps the index over the images of all platforms.
func (b blobs) addIndex(images []ocispec.Descriptor, o origin) ocispec.Descriptor {
	return b.addJSON(ocispec.MediaTypeImageIndex,
		ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
			Manifests: images, Annotations: o.annotations()})
}

// addSBOM keeps an SBOM as an artifact that refers to an image (OCI image specification
// 1.1, "Guidelines for Artifact Usage").
func (b blobs) addSBOM(image ocispec.Descriptor, sbom []byte, o origin) ocispec.Descriptor {
	subject := image
	subject.Platform = nil
	config := b.add(ocispec.MediaTypeEmptyJSON, []byte("{}"))
	descriptor := b.addJSON(ocispec.MediaTypeImageManifest,
		ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
			ArtifactType: sbomType, Config: config, Layers: []ocispec.Descriptor{b.add(sbomType, sbom)}, Subject: &subject,
			Annotations: map[string]string{ocispec.AnnotationCreated: o.created.Format(time.RFC3339)}})
	descriptor.ArtifactType = sbomType
	return descriptor
}

// rootsPath is where crypto/x509 looks for roots on Linux first.
const rootsPath = "etc/ssl/certs/ca-certificates.crt"

// publicRoots returns the public CAs as PEM: Mozilla's list, in the
// version that go.mod names. The bundle of the machine that builds would be another on
// each machine. Roots that Mozilla trusts for old certificates only are left out, because
// a PEM file cannot say so.
func publicRoots() ([]byte, error) { return encodeRoots(bundle.Roots()) }

func encodeRoots(roots iter.Seq[bundle.Root]) ([]byte, error) {
	var out bytes.Buffer
	for root := range roots {
		if root.Constraint != nil {
			continue
		}
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("read a public root: %w", err)
		}
		fmt.Fprintf(&out, "# %s\n", certificate.Subject)
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("write a public root: %w", err)
		}
	}
	return out.Bytes(), nil
}

// layout is an OCI image layout before it is written.
type layout struct {
	blobs
	entries []ocispec.Descriptor // of index.json
}

func newLayout() *layout { return &layout{blobs: blobs{}} }

// tag lists a manifest in index.json under a tag.
func (l *layout) tag(d ocispec.Descriptor, tag string) {
	d.Annotations = map[string]string{ocispec.AnnotationRefName: tag}
	l.entries = append(l.entries, d)
}

// files returns the layout's files: OCI image specification 1.1, "Image Layout".
func (l *layout) files() files {
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: l.entries}
	all := files{ocispec.ImageIndexFile: {content: encode(index)},
		ocispec.ImageLayoutFile: {content: encode(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})}}
	for d, data := range l.blobs {
		all[path.Join(ocispec.ImageBlobsDir, d.Algorithm().String(), d.Encoded())] = file{content: data}
	}
	return all
}

// writeFolder writes the layout as a folder, in place of the layout that is there. It
// refuses to replace a folder that is something else.
func (l *layout) writeFolder(folder string) error {
	if err := clear(folder); err != nil {
		return err
	}
	return l.files().write(folder)
}

// clear removes an OCI image layout, and nothing else.
func clear(folder string) error {
	entries, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return fmt.Errorf("write an image layout: %w", err)
	}
	if _, err := os.Stat(filepath.Join(folder, ocispec.ImageLayoutFile)); err != nil {
		return fmt.Errorf("%s exists and is no image layout: remove it, or name another folder", folder)
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove the old image layout: %w", err)
	}
	return nil
}

// writeFile writes a file, and the folder that it is in.
func writeFile(name string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), folderMode); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(name, content, mode); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
