package debug

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// record is the start of a record in the documentation, and field the names in one of its lines.
var (
	record = regexp.MustCompile(`^//\t([a-z]+)(, .*)?$`)
	field  = regexp.MustCompile(`^//\t\t((?:[a-z_?]+ )*[a-z_?]+)(  .*)?$`)
)

// documented returns the fields of each record that the documentation of the package describes.
func documented(t *testing.T) map[string][]string {
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(source), "// # JSON\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "// # ")
	records, name := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := record.FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if m := field.FindStringSubmatch(line); m != nil {
			records[name] = append(records[name], strings.Fields(m[1])...)
		}
	}
	return records
}

// fields returns the JSON fields of a record, with a question mark if they may be left out.
func fields(x any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(x)) {
		if !f.IsExported() {
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if option != "" {
			name += "?"
		}
		names = append(names, name)
	}
	return names
}

func TestTheJSONIsDocumented(t *testing.T) {
	records := documented(t)
	want := map[string]any{
		"snapshot": Snapshot{}, "counts": countsInfo{}, "conn": connInfo{}, "stats": statsInfo{}, "subscriptions": subscriptionsInfo{},
		"cause": causeInfo{}, "session": sessionInfo{}, "event": eventInfo{}, "gate": gateInfo{}, "breaker": breakerInfo{},
		"probe": probeInfo{}, "rotation": rotationInfo{}, "about": aboutInfo{},
		"group": groupInfo{}, "value": Value{},
	}
	require.Len(t, records, len(want))
	for name, x := range want {
		require.ElementsMatch(t, fields(x), records[name], name)
	}
}
