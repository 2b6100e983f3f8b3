//go:build ignore

// Keyring says which logins a kubelet would try, by the kubelet's own code. Each line of its input is a question, and
// each of its output the answer: for each image, the names of users in the order of the kubelet. It is built as a file,
// since a package that imports Kubernetes directly would have another go.mod.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/kubernetes/pkg/credentialprovider"
)

// question is about pods that have pull secrets, each the content of .dockerconfigjson.
type question struct{ Secrets, Images []string }

// answer has an error if the kubelet takes none of the secrets.
type answer struct {
	Users [][]string
	Error string
}

func main() {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var q question
		err := json.Unmarshal(in.Bytes(), &q)
		if err == nil {
			err = out.Encode(ask(q))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// ask does as the kubelet's MakeDockerKeyring, whose types of Secrets are not in this module by themselves.
func ask(q question) answer {
	keyring := &credentialprovider.BasicDockerKeyring{}
	for _, text := range q.Secrets {
		var config credentialprovider.DockerConfigJSON
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			return answer{Error: err.Error()}
		}
		keyring.Add(nil, config.Auths)
	}
	var a answer
	for _, image := range q.Images {
		users := []string{}
		logins, _ := keyring.Lookup(image)
		for _, login := range logins {
			users = append(users, login.Username)
		}
		a.Users = append(a.Users, users)
	}
	return a
}
