"""The words in which people say what a password is, in the languages that are known here."""

from __future__ import annotations

# What a password is called; written together with a word before it (Datenbankpasswort) it is found as well.
SPOKEN = (
    *("password", "passwd", "passphrase", "pass phrase", "passcode", "passwort", "kennwort", "mot de passe"),
    *("phrase secrète", "phrase de passe", "contraseña", "clave", "parola d'ordine", "parola d’ordine"),
    *("parola chiave", "senha", "palavra-passe", "palavra passe", "wachtwoord", "hasło", "haslo", "пароль", "пароля"),
    *("lösenord", "adgangskode", "passord", "salasana", "parola", "şifre", "heslo", "jelszó", "κωδικός", "mật khẩu"),
    *("kata sandi", "كلمة السر", "كلمة المرور", "رمز عبور", "סיסמה", "סיסמא", "पासवर्ड", "รหัสผ่าน"),
    *("密码", "密碼", "口令", "パスワード", "パスフレーズ", "暗証番号", "비밀번호", "암호", "패스워드"),
)
# Names that code has as well, where what follows a colon may be the name of something.
IN_CODE = ("pass",)
# Endings of articles and cases.
ENDINGS = r"(?:et|en|ar|sı|si|nı|ni|ası|y|ом|е|у|ем)?"
# As words of their own only: they stand for much else, so that a user has to be named beside them.
SHORT = ("pw", "pwd", "mdp")
PINS = ("pin", "geheimzahl")
# What stands between the name and what it is: "for staging", "von der Datenbank".
PREPOSITIONS = (
    *("for", "of", "to", "on", "at", "in", "für", "von", "vom", "zum", "zur", "der", "des", "du", "de", "del"),
    *("della", "do", "da", "dos", "das", "per", "pour", "para", "en", "voor", "van", "till", "od", "dla", "от"),
    *("для", "к", "you", "we", "i", "that"),
)
IS = (
    *(
        "is",
        "was",
        "are",
        "will be",
        "should be",
        "used to be",
        "is now",
        "is still",
        "is currently",
        "is set to",
        "was set to",
    ),
    *("is changed to", "was changed to", "ist", "war", "lautet", "heißt", "ist jetzt", "est", "était"),
    *("est maintenant", "es", "era", "é", "è", "sarà", "foi", "jest", "är", "este", "это", "είναι", "là", "adalah"),
    *("هي", "هو", "है", "คือ"),
)
# These mean something else in other languages.
IS_AFTER = (
    *(("hasło", "to"), ("haslo", "to"), ("salasana", "on"), ("heslo", "je"), ("passord", "er")),
    *(("passordet", "er"), ("adgangskoden", "er")),
)
OWN = ("my", "our", "mein", "unser", "mon", "notre", "mi", "nuestra", "mia", "nostra", "minha", "nossa", "mijn", "ons")
OWN_TOGETHER = ("我的", "我们的", "私の", "うちの", "내 ", "우리 ", "мой ", "наш ", "moje ", "mitt ", "min ")
USER = (
    *("user", "username", "login", "account", "benutzer", "benutzername", "nutzer", "konto", "usuario", "usuário"),
    *("utilisateur", "utente", "identifiant", "conta", "cuenta", "gebruiker", "пользователь", "логин"),
)
USER_TOGETHER = ("用户", "用戶", "账号", "帐号", "ユーザー", "사용자")
# "use X as the password", "X ist das Passwort"
AS = ("is", "as", "ist", "als", "est", "comme", "es", "como", "è", "come", "é", "jako", "som", "как")
# A verb of change, with which "to" says what it became.
CHANGED = r"(?:set|sets|change[ds]?|reset|resets|rotated?|updated?|switch(?:ed)?|geändert|cambi\w+|chang\w+|mud\w+)"
CREDENTIALS = (
    *("credentials", "creds", "login", "logins", "log in", "sign in", "zugangsdaten", "anmeldedaten"),
    *("identifiants", "credenciales", "credenziali", "credenciais", "inloggegevens"),
)
# Words that join others, and participles: with one of them it is a sentence about a password.
_JOINS = """
    not never no stored kept saved in on at the a an set validated checked needed used hashed encrypted reset
    changed being that what too always only also still now already read sent part like from for to as if when then
    this it its and or but by with without be been has have can must may will shall should would could does do done
    your his her their under over nicht im der die das ein eine zu und oder gespeichert dans pas le la les un une en
    et el los una y non nel nella il lo não na o os uma em niet een het de nie не нет в provided passed generated
    managed masked redacted
"""
# Adjectives that say something about it where they stand alone.
_ADJECTIVES = """
    wrong incorrect required optional empty missing invalid expired same different hard case falsch richtig leer nötig
    abgelaufen obligatoire erroné vide incorrecta requerida vacía scaduta sbagliata errada vazia stronger weak weaker
    strong secure insecure correct valid visible hidden safe known unknown plain public private deprecated supported
    available present secret sensitive
"""
JOINS = frozenset(_JOINS.split())
ADJECTIVES = frozenset(_ADJECTIVES.split())
ABOUT_TOGETHER = "必|不|错|錯|存|空|没|正|无|無|必要|間|违|由|用|在|保|的|可|被|应|需|없|틀|필요|저장|設|入|ハ"
