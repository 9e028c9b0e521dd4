// Package pick finds things by their names, and says which names there are.
package pick

import (
	"fmt"
	"slices"
	"strings"
)

// One returns the thing that has a name. The error lists the names of all.
func One[T any](what, name string, all []T, nameOf func(T) string) (T, error) {
	if i := slices.IndexFunc(all, func(x T) bool { return nameOf(x) == name }); i >= 0 {
		return all[i], nil
	}
	var none T
	return none, fmt.Errorf("there is no %s %q: there are %s", what, name, strings.Join(Names(all, nameOf), ", "))
}

// Names returns the names of all.
func Names[T any](all []T, nameOf func(T) string) []string {
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = nameOf(x)
	}
	return names
}

// Itself is the name of a name.
func Itself(name string) string { return name }

// Kind returns the name of a value of a type that has the values 0, 1, 2 and so on.
func Kind[T ~uint8](names []string, value T) string {
	if int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("kind %d", value)
}

// Kinds returns the values of a type that has a value for each of these names.
func Kinds[T ~uint8](names []string) []T {
	all := make([]T, len(names))
	for i := range all {
		all[i] = T(i)
	}
	return all
}
