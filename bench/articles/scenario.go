package articles

import "github.com/redial-go/redial/bench/internal/cli"

// set sets what the user has given.
func set[T any](f *cli.Flags, name string, from, into *T) {
	if f.Given(name) {
		*into = *from
	}
}
