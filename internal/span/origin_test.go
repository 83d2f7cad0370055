package span

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// TestOfAnOriginEveryFieldIsBoundedAndCloned: also of one that comes to be added.
func TestOfAnOriginEveryFieldIsBoundedAndCloned(t *testing.T) {
	var origin Origin
	fields := reflect.ValueOf(&origin).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetString(strings.Repeat("x", 1<<16))
	}
	origin.Normalize()
	clone := origin.Clone()
	if clone != origin {
		t.Error("a clone is another origin")
	}
	clones := reflect.ValueOf(clone)
	for i := range fields.NumField() {
		name, text, cloned := fields.Type().Field(i).Name, fields.Field(i).String(), clones.Field(i).String()
		longest := MaxOriginField
		switch name {
		case "ProcessTags":
			longest = MaxProcessTags
		case "Attributes":
			longest = MaxAttributes
		}
		if len(text) > longest {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		if unsafe.StringData(text) == unsafe.StringData(cloned) {
			t.Errorf("the clone's %s is the origin's memory", name)
		}
	}
}
