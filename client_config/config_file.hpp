#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace client_config {

// Somebody else's file, read and replaced whole. Symbolic links are followed: the file they lead to
// is replaced, with its mode and owner, and the links stay.
class ConfigFile {
 public:
  // Throws std::runtime_error for a file that cannot be read, is no regular file, or is larger than
  // a configuration would be. Others of us wait until this one is gone, for some seconds.
  explicit ConfigFile(const std::filesystem::path& path);
  ~ConfigFile();
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;

  const std::filesystem::path& path() const { return path_; }  // where the links lead
  std::filesystem::path backup_path() const;
  const std::optional<std::string>& text() const { return text_; }  // absent: no such file
  std::optional<std::string> backup() const;

  // Keeps what the file is now beside it, if it is there; in place of the last backup.
  void back_up() const;
  // Written aside and renamed. Directories that lead to it are made. Throws std::runtime_error when
  // somebody else has changed the file since it was read; so does remove().
  void replace(const std::string& text) const;
  void remove() const;
  void remove_backup() const;

 private:
  void check_unchanged() const;

  std::filesystem::path path_;
  int directory_ = -1;  // with our lock on it; -1 as long as there is none
  std::optional<std::string> text_;
};

}  // namespace client_config
