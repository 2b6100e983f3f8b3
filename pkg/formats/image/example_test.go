package image_test

import (
	"fmt"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func ExampleParse() {
	for _, text := range []string{"nginx", "INDEX.docker.io/library/nginx:1.27", "registry.example.com/app@sha256:short"} {
		ref, err := image.Parse(text)
		if err != nil {
			fmt.Println("error:", err)
			continue
		}
		fmt.Println(ref)
	}
	// Output:
	// docker.io/library/nginx:latest
	// docker.io/library/nginx:1.27
	// error: image reference "registry.example.com/app@sha256:short" is not valid: it must have the form host/repository:tag or host/repository@sha256:…
}

func ExamplePattern_Match() {
	pattern, err := image.ParsePattern("registry.example.com/team-a/**")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"registry.example.com/team-a/app:1", "registry.example.com/team-ab/app:1",
		"registry.example.com.attacker.example/team-a/app:1"} {
		ref, err := image.Parse(text)
		fmt.Println(text, err == nil && pattern.Match(ref))
	}
	// Output:
	// registry.example.com/team-a/app:1 true
	// registry.example.com/team-ab/app:1 false
	// registry.example.com.attacker.example/team-a/app:1 false
}

func ExampleTemplate_For() {
	template, err := image.ParseTemplate("mirror.example.com", "{registry}/{repository}")
	if err != nil {
		fmt.Println(err)
		return
	}
	ref, err := image.Parse("registry.example.com:5000/team-a/app:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(template.For(ref))
	// Output: mirror.example.com/registry.example.com_5000/team-a/app <nil>
}
