package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func newTrust(by person) *cobra.Command {
	return group("trust", "Export roots, timestamp authorities and revocation lists for air-gapped sites", newTrustExport(by))
}

// trustFlags are the flags of trust export.
type trustFlags struct {
	by                      person
	mirror, root, authority string
	skipRoot, timestamps    bool
	lists                   []string
	name, out               string
	configMapOnly           bool
}

func newTrustExport(by person) *cobra.Command {
	flags := trustFlags{by: by}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print a verified Sigstore root, timestamp authorities and revocation lists as a ConfigMap",
		Long: `Export reads a TUF repository (by default, Sigstore's public repository), and verifies it like a
TrustStore with spec.source.tuf. It prints a ConfigMap with the trusted root, and a
ClusterTrustStore that references the ConfigMap. Apply both in clusters that cannot reach the
repository. They use the cluster resource namespace: the namespace of -n, or of
--landwaiter-account. --mirror can be a directory with a copy of the repository. Export also
verifies this copy; the metadata in it must not have expired.

--timestamp-authorities adds the root certificates of the timestamp authorities, for Notation.
--revocation-list adds certificate revocation lists from a file or a URL. The cluster verifies
each list with the certificate of its issuer.

The same trust material always produces the same output. Export prints expiry dates to standard
error and into a comment; in the cluster, the condition ExpiresSoon warns. If export cannot verify
something, it prints and writes nothing.

Exit codes (64 and 69: see landwaiter --help):
  0  the trust material is printed
  1  the trust material is refused: not signed by the repository's keys, incomplete or expired`,
		Example: `  landwaiter trust export --out sigstore.yaml
  landwaiter trust export --mirror ./tuf-copy --root ./root.json --name company --timestamp-authorities
  landwaiter trust export --skip-root --name revocation --revocation-list http://crl.example.com/ca.crl`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.export(cmd) },
	}
	uses(cmd, 0, flagAccount)
	own := cmd.Flags()
	own.StringVar(&flags.mirror, "mirror", "", "https URL of a TUF repository, or a directory with a copy of the repository (empty: "+
		"Sigstore's repository)")
	own.StringVar(&flags.root, "root", "", "file with the repository's initial root.json (empty: Sigstore's root.json)")
	own.StringVar(&flags.authority, "ca", "", "file with CA certificates for --mirror, in addition to the system's certificates (empty: none)")
	own.BoolVar(&flags.skipRoot, "skip-root", false, "export only the lists of --revocation-list, and read no TUF repository")
	own.BoolVar(&flags.timestamps, "timestamp-authorities", false,
		"add the roots of the timestamp authorities as a ClusterTrustStore for Notation")
	own.StringArrayVar(&flags.lists, "revocation-list", nil, "file or http(s) URL of a certificate revocation list in DER or PEM format "+
		"(repeatable; none: no lists)")
	own.StringVar(&flags.name, "name", "sigstore", "name of the ConfigMap and of the ClusterTrustStores")
	own.StringVar(&flags.out, "out", "", "file to write, or a directory for NAME.yaml (empty: standard output)")
	own.BoolVar(&flags.configMapOnly, "config-map-only", false, "print the ConfigMap without ClusterTrustStores")
	return cmd
}

func (f trustFlags) export(cmd *cobra.Command) error {
	account, err := f.by.landwaiter()
	if err != nil {
		return err
	}
	namespace := cmp.Or(*f.by.Namespace, account.Namespace)
	switch {
	case len(validation.IsDNS1123Label(namespace)) > 0:
		return fmt.Errorf("--namespace %q is not the name of a namespace", namespace)
	case len(validation.IsDNS1123Label(f.name)) > 0:
		return fmt.Errorf("--name %q cannot be the name of an object: use at most 63 lower-case letters, digits and dashes", f.name)
	case f.skipRoot && (f.mirror+f.root+f.authority != "" || f.timestamps):
		return errors.New("--skip-root reads no TUF repository: leave out --mirror, --root, --ca and --timestamp-authorities")
	case f.skipRoot && !cmd.Flags().Changed("name"):
		return errors.New("--skip-root requires --name: with the default name, sigstore, this export would replace an exported root")
	case f.skipRoot && len(f.lists) == 0:
		return errors.New("there is nothing to export: give --revocation-list, or leave out --skip-root")
	}
	material, err := f.read(cmd.Context())
	var refused *external.RefusedError
	if errors.As(err, &refused) {
		err = &program.Exit{Code: program.ExitDenied, Err: err}
	}
	if err != nil {
		return err
	}
	made := scaffold.Trust{Namespace: namespace, Name: f.name, Source: f.source(), ConfigMapOnly: f.configMapOnly, Root: material.Root,
		Roles:                material.Roles,
		TimestampAuthorities: material.TimestampAuthorities, RevocationLists: material.RevocationLists}
	for _, end := range material.Ends {
		made.Ends = append(made.Ends, end.At.UTC().Format(time.RFC3339)+" "+end.Part)
	}
	text, err := made.Manifest()
	if err != nil {
		return err
	}
	if err := f.write(cmd, text); err != nil {
		return program.Failed(err)
	}
	now := time.Now()
	for _, end := range material.Ends {
		note := ""
		if end.Due(now) {
			note = "warning: "
		}
		program.Say(cmd.ErrOrStderr(), "%s%s expires at %s", note, end.Part, end.At.UTC().Format(time.RFC3339))
	}
	return nil
}

// source describes the source of the trust material in the manifest.
func (f trustFlags) source() string {
	switch {
	case f.skipRoot:
		return "files"
	case f.mirror != "":
		return "a TUF repository"
	}
	return "Sigstore's TUF repository"
}

// read reads the trust material that the flags select.
func (f trustFlags) read(ctx context.Context) (external.Material, error) {
	var material external.Material
	if !f.skipRoot {
		initial, err := program.ReadSetting("--root", f.root)
		if err != nil {
			return material, err
		}
		authority, err := program.ReadSetting("--ca", f.authority)
		if err != nil {
			return material, err
		}
		if _, err := os.Stat(f.mirror); f.mirror != "" && !strings.Contains(f.mirror, "://") && err != nil {
			return material, fmt.Errorf("--mirror: %w", err)
		}
		if err := material.AddRoot(ctx, external.TUFRepository{Mirror: f.mirror, Root: string(initial), Authority: string(authority)},
			f.timestamps); err != nil {
			return material, program.Failed(err)
		}
	}
	for _, from := range f.lists {
		var content []byte
		var err error
		if strings.Contains(from, "://") {
			content, err = external.FetchRevocationList(ctx, from)
			err = program.Failed(err)
		} else {
			content, err = os.ReadFile(from) //nolint:gosec // the file is the user's
		}
		if err != nil {
			return material, err
		}
		if err := material.AddRevocationLists(content, time.Now()); err != nil {
			return material, fmt.Errorf("%s: %w", from, err)
		}
	}
	return material, nil
}

func (f trustFlags) write(cmd *cobra.Command, text []byte) error {
	if f.out == "" {
		return document(cmd.OutOrStdout(), text)
	}
	name := f.out
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, f.name+".yaml")
	}
	return os.WriteFile(name, text, 0o644) //nolint:gosec // everything in it is public
}
