// Command release makes what users of Landwaiter get: container images, without Docker,
// and the files of a release. The same commit and the same version of Go give the same
// bytes, signatures apart: nothing of the machine and of the clock goes into them.
//
// It refuses to push to a registry without TLS unless that is on this machine, to
// overwrite a folder that it did not make, and to leave out a signature unasked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

const usage = `Usage:
  release image -image NAME:TAG [-out FOLDER] [-push]   build an OCI image layout, and push it
  release push -layout PATH [-tag TAG] [-attestation FILE] NAME:TAG   push an image of a layout (folder or tar)
  release dist -out FOLDER (-cosign PATH -key KEY | -unsigned)   make a release
  release certificates                                  print the images' public CAs`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"image": runImage, "push": runPush, "dist": runDist, "certificates": runCertificates}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("which command?\n" + usage)
	}
	return commands[args[0]](ctx, args[1:], stdout, stderr)
}

// makerFlags are the flags of what is made from the checkout.
type makerFlags struct {
	root, version, revision string
	epoch                   int64
}

func (f *makerFlags) register(set *flag.FlagSet) {
	set.StringVar(&f.root, "root", ".", "folder of the checkout")
	set.StringVar(&f.version, "version", "dev", "version")
	set.StringVar(&f.revision, "revision", "", "commit")
	set.Int64Var(&f.epoch, "epoch", 0, "time of the commit, in seconds since 1970")
}

func (f *makerFlags) maker(progress io.Writer) (*maker, error) {
	roots, err := publicRoots()
	if err != nil {
		return nil, err
	}
	m := &maker{origin: origin{version: f.version, revision: f.revision, created: time.Unix(f.epoch, 0).UTC()},
		builder: builder{root: f.root, progress: progress, built: map[string]binary{}}, roots: roots}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, errors.New("this program was built without a list of its modules")
	}
	i := slices.IndexFunc(info.Deps, func(d *debug.Module) bool { return d.Path == rootsModule })
	if i < 0 {
		return nil, fmt.Errorf("this program was built without %s", rootsModule)
	}
	m.rootsModule = info.Deps[i]
	return m, nil
}

func runImage(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var made makerFlags
	set := flag.NewFlagSet("release image", flag.ContinueOnError)
	set.SetOutput(stderr)
	made.register(set)
	name := set.String("image", "", "name and tag of the image")
	out := set.String("out", "bin/image", "folder for the image layout")
	platformList := set.String("platforms", "linux/amd64,linux/arm64", "platforms of the image")
	variantList := set.String("variants", "default,full", "which images: default, full")
	pushed := set.Bool("push", false, "push to the registry that the name has")
	if err := set.Parse(args); err != nil {
		return err
	}
	tag, err := parseTag(*name)
	if err != nil {
		return err
	}
	if *pushed {
		if _, err := parseName(*name); err != nil {
			return err
		}
	}
	var platforms []platform
	for _, text := range strings.Split(*platformList, ",") {
		p, err := parsePlatform(text)
		if err != nil {
			return err
		}
		platforms = append(platforms, p)
	}
	m, err := made.maker(stderr)
	if err != nil {
		return err
	}
	l := newLayout()
	var names []string
	for _, name := range strings.Split(*variantList, ",") {
		v, known := variants()[name]
		if !known {
			return fmt.Errorf("there is no variant %q of the image: default, full", name)
		}
		if err := m.addVariant(ctx, l, v, platforms, tag+v.suffix); err != nil {
			return err
		}
		names = append(names, v.suffix)
	}
	if err := l.writeFolder(*out); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s has the image, for %s, as an OCI image layout.\n", *out, *platformList)
	if !*pushed {
		fmt.Fprintf(stdout, "Push it with: make image IMAGE=%s PUSH=1\n", example(*name, tag))
		return nil
	}
	for _, suffix := range names {
		if err := pushTo(ctx, *out, tag+suffix, nil, *name+suffix, stdout); err != nil {
			return err
		}
	}
	return nil
}

// example is the name that a reader may push to: theirs, if it has a registry.
func example(name, tag string) string {
	if _, err := parseName(name); err == nil {
		return name
	}
	return "registry.example.com/landwaiter/landwaiter:" + tag
}

// pushTo pushes one image, and says by which digest it can be signed and deployed.
func pushTo(ctx context.Context, layout, tag string, attestation []byte, name string, stdout io.Writer) error {
	ref, err := parseName(name)
	if err != nil {
		return err
	}
	source, err := openLayout(ctx, layout)
	if err != nil {
		return err
	}
	target, err := openRepository(ref)
	if err != nil {
		return err
	}
	d, err := push(ctx, source, tag, attestation, target, ref.Reference)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Pushed %s@%s\n", name, d.Digest)
	return nil
}

func runPush(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("release push", flag.ContinueOnError)
	set.SetOutput(stderr)
	layout := set.String("layout", "bin/image", "image layout, a folder or a tar file")
	tag := set.String("tag", "", "tag in the layout (default: that of the name)")
	attestation := set.String("attestation", "", "signed provenance to attach to the image: "+attestationFile+" of the release")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() != 1 {
		return errors.New("name one image to push to\n" + usage)
	}
	if *tag == "" {
		var err error
		if *tag, err = parseTag(set.Arg(0)); err != nil {
			return err
		}
	}
	var bundle []byte
	if *attestation != "" {
		var err error
		if bundle, err = os.ReadFile(*attestation); err != nil {
			return fmt.Errorf("read the provenance: %w", err)
		}
	}
	return pushTo(ctx, *layout, *tag, bundle, set.Arg(0), stdout)
}

func runDist(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var made makerFlags
	var s signer
	set := flag.NewFlagSet("release dist", flag.ContinueOnError)
	set.SetOutput(stderr)
	made.register(set)
	out := set.String("out", "dist", "folder for the release")
	set.StringVar(&s.cosign, "cosign", "", "the cosign 3 program")
	set.StringVar(&s.key, "key", "", "key to sign with: a file, or a URL of a key management service")
	unsigned := set.Bool("unsigned", false, "make no signature")
	if err := set.Parse(args); err != nil {
		return err
	}
	if (s.key == "") != *unsigned {
		return errors.New("a release is signed: give COSIGN_KEY=cosign.key (or a KMS URL), or UNSIGNED=1 for a trial without a signature")
	}
	if strings.HasSuffix(made.version, "-dirty") && !*unsigned {
		return fmt.Errorf("%s is not what is committed: commit or drop the changes, or use UNSIGNED=1 for a trial", made.version)
	}
	m, err := made.maker(stderr)
	if err != nil {
		return err
	}
	if err := m.checkToolchain(ctx); err != nil {
		return err
	}
	if !*unsigned {
		if err := m.checkCommitted(ctx); err != nil {
			return err
		}
	}
	if err := prepare(*out); err != nil {
		return err
	}
	all, err := m.release(ctx)
	if err != nil {
		return err
	}
	if err := all.write(*out); err != nil {
		return err
	}
	if *unsigned {
		fmt.Fprintf(stdout, "%s has the release %s. It is NOT signed.\n", *out, m.version)
		return nil
	}
	if err := s.sign(ctx, *out); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s has the release %s, signed in %s.\n", *out, m.version, filepath.Join(*out, signatureFile))
	return nil
}

func runCertificates(_ context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) > 0 {
		return errors.New("certificates takes no arguments")
	}
	roots, err := publicRoots()
	if err != nil {
		return err
	}
	_, err = stdout.Write(roots)
	return err
}
