package provider_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"

	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/pkg/server/serving"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// A provider for resources in files, in a program of your own. It answers by the files as they are: a
// server that follows them makes its Service with service.New, and runs its Run and Watch and the
// Identity's Run as well. The certificates are files, too.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	resources, certificates := exampleFiles()
	defer func() { _ = os.RemoveAll(filepath.Dir(resources)) }()

	log := logrus.New()
	log.SetOutput(io.Discard)
	decider, loaded, err := service.Load(ctx, resources, service.Options{})
	if err != nil {
		panic(err)
	}
	defer decider.Close()
	identity, err := serving.New(nil, log,
		serving.Options{CertificateFile: certificates.CertificateFile(), KeyFile: certificates.KeyFile(), ClientCAFiles: []string{certificates.CAFile()}})
	if err != nil {
		panic(err)
	}
	server, err := provider.New(decider, decider, log, provider.Options{Address: "127.0.0.1:0", TLS: identity})
	if err != nil {
		panic(err)
	}
	if err := server.Listen(ctx); err != nil {
		panic(err)
	}
	go func() { _ = server.Run(ctx) }()

	answer, err := certificates.Ask("https://"+server.Address(), 0).Ask(ctx, gatekeeper.VerifyPath, "[team-a]registry.example.com/app:1")
	if err != nil {
		panic(err)
	}
	fmt.Println(len(loaded.Problems), "problems")
	for _, item := range answer.Items {
		report, _ := item.Value.(map[string]any)
		fmt.Println(item.Key, report["isSuccess"])
		fmt.Println(report["reason"])
	}
	// Output:
	// 0 problems
	// [team-a]registry.example.com/app:1 false
	// a rule of VerificationPolicy team-a/frozen denies registry.example.com/app. To fix: use another image, or change that rule
}

// exampleFiles writes what the example reads: a rule that denies, since nothing is at registry.example.com.
func exampleFiles() (resources string, certificates *gatekeeper.Certificates) {
	dir, err := os.MkdirTemp("", "landwaiter-example-")
	if err != nil {
		panic(err)
	}
	if certificates, err = gatekeeper.Issue(dir); err != nil {
		panic(err)
	}
	resources = filepath.Join(dir, "resources")
	if err := os.Mkdir(resources, 0o700); err != nil {
		panic(err)
	}
	const denies = `apiVersion: landwaiter.dev/v1beta1
kind: VerificationPolicy
metadata: {namespace: team-a, name: frozen}
spec:
  rules: [{images: [registry.example.com/**], action: Deny}]
`
	if err := os.WriteFile(filepath.Join(resources, "rules.yaml"), []byte(denies), 0o600); err != nil {
		panic(err)
	}
	return resources, certificates
}
