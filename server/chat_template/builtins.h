#pragma once

// The filters, tests, methods and globals that templates can call.

#include <span>
#include <string_view>

#include "absl/time/time.h"
#include "server/chat_template/interpreter.h"

namespace hexad {

// A filter gets the filtered value, a method the value that it belongs to.
using BuiltinFunction = TemplateValue (*)(Interpreter&, const TemplateValue&,
                                          const TemplateArguments&);
struct Builtin {
  const char* name;
  BuiltinFunction function;
};
using TestFunction = bool (*)(Interpreter&, const TemplateValue&, const TemplateArguments&);

std::span<const Builtin> TextFilters();
std::span<const Builtin> SequenceFilters();
std::span<const Builtin> SelectionFilters();
std::span<const Builtin> NumberFilters();
std::span<const Builtin> TextMethods();
std::span<const Builtin> DictMethods();
std::span<const Builtin> ListMethods();

// Null when there is none of that name.
BuiltinFunction FindFilter(std::string_view name);
TestFunction FindTest(std::string_view name);
BuiltinFunction FindMethod(const TemplateValue& value, std::string_view name);
// Python's methods that change a list or dict; the sandbox forbids them.
bool IsForbiddenMethod(const TemplateValue& value, std::string_view name);

// range, dict, namespace, raise_exception, strftime_now.
void DefineGlobals(TemplateScope& scope, absl::Time now);

// Shared by the tables: arguments with defaults; a wrong type fails.
int64_t IntegerArgument(Interpreter& interpreter, const TemplateArguments& arguments, size_t place,
                        std::string_view name, int64_t absent);
std::string TextArgument(Interpreter& interpreter, const TemplateArguments& arguments, size_t place,
                         std::string_view name, std::string_view absent);
bool FlagArgument(const TemplateArguments& arguments, size_t place, std::string_view name,
                  bool absent);
// A list of texts as values, spent.
TemplateValue TextList(Interpreter& interpreter, const std::vector<std::string_view>& parts);

}  // namespace hexad
