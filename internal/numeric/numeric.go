// Package numeric finds the options that are numbers, for the tests of their bounds.
package numeric

import "reflect"

// WithoutRow returns the names of the numeric options that no table tests. A key of options is put
// before the names of the fields of its struct; a field of a struct inside has the name of both, such
// as Pace.N. A number of 8 bits is a kind and not an option that has bounds. Of a struct without
// numeric options it returns the type.
//
// A table is a map by name, a slice of names, or a slice of structs whose first field is the name.
func WithoutRow(options map[string]reflect.Type, tables ...any) (missing []string) {
	rows := make(map[string]bool)
	for _, table := range tables {
		v := reflect.ValueOf(table)
		if v.Kind() == reflect.Map {
			for _, name := range v.MapKeys() {
				rows[name.String()] = true
			}
			continue
		}
		for i := range v.Len() {
			name := v.Index(i)
			if name.Kind() == reflect.Struct {
				name = name.Field(0)
			}
			rows[name.String()] = true
		}
	}
	for path, t := range options {
		names := namesOf(t, path)
		if len(names) == 0 {
			missing = append(missing, t.String())
		}
		for _, name := range names {
			if !rows[name] {
				missing = append(missing, name)
			}
		}
	}
	return missing
}

// namesOf returns the names of the numeric fields of t, with path before each.
func namesOf(t reflect.Type, path string) (names []string) {
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.IsExported() {
			continue
		}
		switch v := reflect.Zero(field.Type); {
		case v.Kind() == reflect.Struct:
			names = append(names, namesOf(field.Type, path+field.Name+".")...)
		case v.CanInt() || v.CanUint() || v.CanFloat():
			if field.Type.Bits() > 8 {
				names = append(names, path+field.Name)
			}
		}
	}
	return names
}
