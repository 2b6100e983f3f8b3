package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	intoto "github.com/in-toto/attestation/go/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Names of files in a release.
const (
	sumsFile       = "SHA256SUMS"
	signatureFile  = sumsFile + ".sigstore.json"
	imagesFile     = "images.txt"
	provenanceFile = "provenance.json"
	// attestationFile is provenanceFile in a signed envelope.
	attestationFile = "provenance.sigstore.json"
)

// imagePlatforms are those of images, and binaryPlatforms those of binaries: on macOS
// only the commands that need no cluster are of use.
func imagePlatforms() []platform { return []platform{{"linux", "amd64"}, {"linux", "arm64"}} }

func binaryPlatforms() []platform {
	return append(imagePlatforms(), platform{"darwin", "amd64"}, platform{"darwin", "arm64"})
}

// maker makes what a release has.
type maker struct {
	origin
	builder
	roots       []byte
	rootsModule *debug.Module // where roots come from
}

// addVariant adds an index with an image for each platform to a layout, with an SBOM for
// each image, under a tag.
func (m *maker) addVariant(ctx context.Context, l *layout, v variant, platforms []platform, tag string) error {
	var images, sboms []ocispec.Descriptor
	for _, p := range platforms {
		built, err := m.build(ctx, server, p, v, m.origin)
		if err != nil {
			return err
		}
		image, err := l.addImage(p, m.roots, built.content, m.origin)
		if err != nil {
			return err
		}
		text, err := describe(built, m.origin, m.rootsModule)
		if err != nil {
			return err
		}
		images, sboms = append(images, image), append(sboms, l.addSBOM(image, text, m.origin))
	}
	l.tag(l.addIndex(images, m.origin), tag)
	l.entries = append(l.entries, sboms...)
	return nil
}

// release returns every file of a release but the signatures.
func (m *maker) release(ctx context.Context) (files, error) {
	checkout := os.DirFS(m.root)
	helm, err := fs.Sub(checkout, "charts/landwaiter")
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	about, err := readChart(helm)
	if err != nil {
		return nil, err
	}
	if err := about.check(m.version); err != nil {
		return nil, err
	}
	packed, err := packChart(helm, about.Name, m.origin)
	if err != nil {
		return nil, err
	}
	made := files{fmt.Sprintf("%s-%s.tgz", about.Name, about.Version): {content: packed}}
	for _, name := range []string{"LICENSE", "NOTICE"} { // who passes a binary on needs both
		text, err := fs.ReadFile(checkout, name)
		if err != nil {
			return nil, fmt.Errorf("read the licences: %w", err)
		}
		made[name] = file{content: text}
	}
	artifacts, err := m.releaseImages(ctx, made)
	if err != nil {
		return nil, err
	}
	if err := m.releaseBinaries(ctx, made); err != nil {
		return nil, err
	}
	if err := m.releaseProvenance(ctx, made, artifacts); err != nil {
		return nil, err
	}
	made[sumsFile] = file{content: sums(made)}
	return made, nil
}

// number is the version without the "v": the tag of images, as the chart has it.
func (o origin) number() string { return strings.TrimPrefix(o.version, "v") }

func (m *maker) releaseBinaries(ctx context.Context, made files) error {
	for _, p := range binaryPlatforms() {
		built, err := m.build(ctx, people, p, variants()["default"], m.origin)
		if err != nil {
			return err
		}
		sbom, err := describe(built, m.origin)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s_%s_%s_%s", people, m.number(), p.os, p.arch)
		made[name] = file{content: built.content, executable: true}
		made[name+".cdx.json"] = file{content: sbom}
	}
	return nil
}

// releaseProvenance adds the provenance of all files so far and of images.
func (m *maker) releaseProvenance(ctx context.Context, made files, images []*intoto.ResourceDescriptor) error {
	artifacts := images
	for _, name := range slices.Sorted(maps.Keys(made)) {
		artifacts = append(artifacts, artifact(name, made[name].sum()))
	}
	// The compiler is the same for all programs: checkToolchain sees to it.
	built, err := m.build(ctx, server, imagePlatforms()[0], variants()["default"], m.origin)
	if err != nil {
		return err
	}
	text, err := describeBuild(artifacts, built.info.GoVersion, m.origin)
	if err != nil {
		return err
	}
	made[provenanceFile] = file{content: text}
	return nil
}

// releaseImages adds an image layout for each variant, and a list of their digests, so
// that the signature of the sums holds for images in a registry too. It returns the images.
func (m *maker) releaseImages(ctx context.Context, made files) ([]*intoto.ResourceDescriptor, error) {
	var digests strings.Builder
	var artifacts []*intoto.ResourceDescriptor
	for _, name := range slices.Sorted(maps.Keys(variants())) {
		v, l := variants()[name], newLayout()
		tag := m.number() + v.suffix
		if err := m.addVariant(ctx, l, v, imagePlatforms(), tag); err != nil {
			return nil, err
		}
		images, err := l.imageArtifacts(l.entries[0], tag)
		if err != nil {
			return nil, err
		}
		artifacts = append(artifacts, images...)
		fmt.Fprintf(&digests, "%s  %s\n", l.entries[0].Digest, tag)
		packed, err := pack(l.files(), true, m.created)
		if err != nil {
			return nil, err
		}
		made[fmt.Sprintf("%s_%s_image%s.oci.tar", product, m.number(), v.suffix)] = file{content: packed}
	}
	made[imagesFile] = file{content: []byte(digests.String())}
	return artifacts, nil
}

// sum is the SHA-256 of a file's content in lower-case hex.
func (f file) sum() string {
	sum := sha256.Sum256(f.content)
	return hex.EncodeToString(sum[:])
}

// sums returns the SHA-256 of each file as sha256sum prints them.
func sums(of files) []byte {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&out, "%s  %s\n", of[name].sum(), name)
	}
	return []byte(out.String())
}

// prepare makes the folder of a release. It refuses one with files in it: those of an
// older release would not be in the sums.
func prepare(folder string) error {
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return fmt.Errorf("make the folder of the release: %w", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("make the folder of the release: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or name another folder with RELEASE=", folder)
	}
	return nil
}

// write writes files into a folder.
func (f files) write(folder string) error {
	for name, made := range f {
		mode := fs.FileMode(fileMode)
		if made.executable {
			mode = programMode
		}
		if err := writeFile(filepath.Join(folder, filepath.FromSlash(name)), made.content, mode); err != nil {
			return err
		}
	}
	return nil
}

// signer signs with the cosign 3 command line.
type signer struct {
	cosign string // path of the program
	key    string // file, or a URL of a key management service
}

// sign signs the sums and the provenance in a folder, without a transparency log, and
// checks both signatures.
func (s signer) sign(ctx context.Context, folder string) error {
	scratch, err := os.MkdirTemp("", "landwaiter-sign-")
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // it is only scratch
	config, public := filepath.Join(scratch, "signing-config.json"), filepath.Join(scratch, "cosign.pub")
	bundle, signed := filepath.Join(folder, signatureFile), filepath.Join(folder, sumsFile)
	attestation, statement := filepath.Join(folder, attestationFile), filepath.Join(folder, provenanceFile)
	for _, args := range [][]string{
		{"signing-config", "create", "--out", config},
		{"public-key", "--key", s.key, "--outfile", public},
		{"sign-blob", "--key", s.key, "--signing-config", config, "--bundle", bundle, "--yes", signed},
		{"verify-blob", "--key", public, "--bundle", bundle, "--insecure-ignore-tlog", signed},
		{"attest-blob", "--key", s.key, "--signing-config", config, "--bundle", attestation, "--yes", "--statement", statement},
		{"verify-blob-attestation", "--key", public, "--bundle", attestation, "--insecure-ignore-tlog", "--type", provenanceType,
			filepath.Join(folder, imagesFile)},
	} {
		command := exec.CommandContext(ctx, s.cosign, args...) //nolint:gosec // the program and key that a maintainer names
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("cosign %s: %w", args[0], err)
		}
	}
	return nil
}
