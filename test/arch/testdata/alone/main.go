// Command alone imports nothing but the package for images.
package main

import (
	"fmt"
	"os"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func main() {
	for _, name := range os.Args[1:] {
		ref, err := image.Parse(name)
		fmt.Println(ref, err)
	}
}
