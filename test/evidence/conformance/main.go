// Command conformance speaks the protocol of the sigstore-conformance suite for
// verifying bundles, through the code that verifies them for a cluster:
//
//	conformance verify-bundle --bundle FILE (--certificate-identity ID --certificate-oidc-issuer URL | --key FILE)
//	    [--trusted-root FILE] FILE_OR_DIGEST
//
// It exits with 0 if the bundle is valid for the artifact, which is a file or
// "sha256:…", and else with 1 and says why. It never uses a network: without
// --trusted-root it trusts the copy of the public-good root that the module of
// sigstore-go has, which it asks the go command for.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// request is one question of the suite.
type request struct {
	bundle, identity, issuer, key, trustedRoot string
}

func command() *cobra.Command {
	var r request
	verify := &cobra.Command{
		Use:  "verify-bundle FILE_OR_DIGEST",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return r.verify(cmd.Context(), args[0]) },
	}
	verify.Flags().StringVar(&r.bundle, "bundle", "", "the Sigstore bundle")
	verify.Flags().StringVar(&r.identity, "certificate-identity", "", "subject of the certificate")
	verify.Flags().StringVar(&r.issuer, "certificate-oidc-issuer", "", "issuer of the certificate")
	verify.Flags().StringVar(&r.key, "key", "", "public key (PEM)")
	verify.Flags().StringVar(&r.trustedRoot, "trusted-root", "", "trusted_root.json")
	top := &cobra.Command{Use: "conformance", SilenceUsage: true, SilenceErrors: true}
	top.AddCommand(verify)
	return top
}

// verify returns why the bundle does not count, nil if it does.
func (r request) verify(ctx context.Context, artifact string) error {
	data, err := os.ReadFile(r.bundle)
	if err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	subject, err := subjectOf(artifact)
	if err != nil {
		return err
	}
	checker, err := r.checker(ctx)
	if err != nil {
		return err
	}
	if _, err := checker.VerifyBundle(ctx, data, subject); err != nil {
		return fmt.Errorf("%s: %w", verify.FindingOf(err).Reason, err)
	}
	return nil
}

var byDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// subjectOf is the digest that the artifact is, or that its file has.
func subjectOf(artifact string) (digest.Digest, error) {
	if byDigest.MatchString(artifact) {
		return digest.Digest(artifact), nil
	}
	content, err := os.ReadFile(artifact)
	if err != nil {
		return "", fmt.Errorf("read the artifact: %w", err)
	}
	return digest.FromBytes(content), nil
}

// checker trusts what was asked for, with the thresholds of the suite: keys with a
// log entry, certificates with an SCT, a log entry and a time.
func (r request) checker(ctx context.Context) (*cosign.Checker, error) {
	if r.trustedRoot == "" {
		var err error
		if r.trustedRoot, err = publicGood(ctx); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(r.trustedRoot)
	if err != nil {
		return nil, fmt.Errorf("read the trusted root: %w", err)
	}
	trusted, err := trust.ParseSigstoreRoot(text)
	if err != nil {
		return nil, err
	}
	if r.key == "" {
		return cosign.New(cosign.Options{Signers: cosign.Signers{Keyless: &cosign.Keyless{Root: trusted, Name: r.trustedRoot,
			Identities: []cosign.Identity{{Issuer: r.issuer, Subject: r.identity}}}}})
	}
	return r.keyed(trusted)
}

// publicGood is the root in sigstore-go's module.
func publicGood(ctx context.Context) (string, error) {
	folder, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sigstore/sigstore-go").Output()
	if err != nil {
		return "", fmt.Errorf("find the public-good root (give --trusted-root instead): %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(folder)), "examples", "trusted-root-public-good.json"), nil
}

func (r request) keyed(trusted root.TrustedMaterial) (*cosign.Checker, error) {
	if r.identity != "" || r.issuer != "" {
		return nil, errors.New("a key and an identity contradict each other")
	}
	text, err := os.ReadFile(r.key)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	keys, err := trust.ParsePublicKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.TrimSpace(r.key), err)
	}
	options := cosign.Options{Signers: cosign.Signers{Log: trusted}}
	for _, key := range keys {
		options.Keys = append(options.Keys, cosign.Key{Name: r.key, Public: key.Key, Fingerprint: key.Fingerprint})
	}
	return cosign.New(options)
}
