// Package pick finds things by their names, and says which names there are.
package pick

import (
	"fmt"
	"slices"
	"strings"
)

// One returns the thing that has a name. The error lists the names of all, and says which is nearest if
// one is near.
func One[T any](what, name string, all []T, nameOf func(T) string) (T, error) {
	if i := slices.IndexFunc(all, func(x T) bool { return nameOf(x) == name }); i >= 0 {
		return all[i], nil
	}
	var none T
	names := Names(all, nameOf)
	return none, fmt.Errorf("there is no %s %q%s: there are %s", what, name, Nearest(name, names), strings.Join(names, ", "))
}

// Nearest returns a question for the name that a user may have meant, or "" if none is near: two
// letters may differ, but no more than half of them.
func Nearest(name string, names []string) string {
	nearest, least := "", min(len(name)/2, 2)+1
	for _, one := range names {
		if d := distance(name, one); d < least {
			nearest, least = fmt.Sprintf(" (is it %q?)", one), d
		}
	}
	return nearest
}

// distance is how many letters must be put in, left out or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before, row[j+1] = row[j+1], min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Names returns the names of all.
func Names[T any](all []T, nameOf func(T) string) []string {
	return Each(all, nameOf)
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

// Each returns what of makes of each.
func Each[T, U any](all []T, of func(T) U) []U {
	made := make([]U, len(all))
	for i, x := range all {
		made[i] = of(x)
	}
	return made
}
