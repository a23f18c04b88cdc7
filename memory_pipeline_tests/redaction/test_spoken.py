"""Passwords that are said in sentences, with other words before the value and without accents."""

from __future__ import annotations

import re

from memory_pipeline.redaction import Redactor
from memory_pipeline_tests.growth import grows_evenly

REDACTOR = Redactor(b"salt")
GIVEN = re.compile("⟨(.+?)⟩")

TOLD = [
    "und das Kennwort fuer den Tunnel lautet ⟨Kaffee7Tasse⟩",
    "Das WLAN-Passwort im Büro wäre übrigens ⟨Regen77tag⟩.",
    "das neue Passwort vom alten Testserver heisst jetzt ⟨blau-Wal-93⟩, bitte merken",
    "Die Passphrase unseres Schlüssels war bisher ⟨Nebel!Krähe4⟩",
    "Der Zugangscode fürs Lager lautet ⟨48213⟩",
    "Die PIN der Alarmanlage ist ⟨7391⟩.",
    "Das Passwort, das du für die Datenbank brauchst, ist ⟨q7Wald!kauz⟩",
    "Der API-Schlüssel für die Karten ist ⟨8dk3PPq0zLw4⟩",
    "Passwort (nur Staging): ⟨Moos22grün⟩",
    "Passwörter für beide Server sind ⟨Moos22grau⟩",
    "dass das Passwort ⟨Moos22-gelb⟩ ist",
    "la clave de acceso del panel seria ⟨gato-negro77⟩",
    "la contrasena del router seria ⟨luna77llena⟩",
    "La contraseña que usamos en pruebas es ahora ⟨Pera_verde!9⟩",
    "cambié la contraseña del panel a ⟨mesa45azul⟩",
    "El PIN de la tarjeta es ⟨5521⟩",
    "mot de passe du coffre, c'est ⟨Hiver2031⟩",
    "Le mot de passe admin du serveur de test sera ⟨lune88verte⟩",
    "le nouveau mdp pour le wifi est ⟨Chat-gris!7⟩",
    "La phrase secrete du trousseau etait ⟨Nuage3-Vert8⟩",
    "Pour info le code d'accès du local est ⟨48120⟩",
    "le mot de passe à utiliser → ⟨Pomme77!rouge⟩",
    "the passphrase for it would be ⟨marble7otter⟩",
    "the password of the old admin panel (the one behind nginx) is currently ⟨hunter2x⟩",
    "The password I use when deploying is ⟨c0ffee-Tasse⟩",
    "btw the root password's ⟨Fig77tree⟩ on that box",
    "the password, by the way, is ⟨Fig78tree⟩",
    "wifi password - ⟨Fig79tree⟩",
    "Password for the jump host → ⟨Fig80tree⟩",
    "the access token you need is ⟨8f3kd9A2xxPq⟩",
    "the api key for staging is now ⟨ab12cd34ef56⟩",
    'the passphrase for the backup disk should be "⟨marble otter lamp violin⟩"',
    "the shared secret between both services is `⟨k2LL90-zzQ1⟩`",
    "the alarm code is ⟨90817⟩",
    "La password del vecchio NAS adesso è ⟨Neve22bianca⟩",
    "la password per entrare nel pannello sarebbe ⟨Neve23bianca⟩",
    "a senha do painel agora é ⟨Praia55sol⟩",
    "A senha que usamos no servidor de teste e ⟨Praia56sol⟩",
    "het wachtwoord van de oude server is nu ⟨Molen66wind⟩",
    "hasło do panelu administratora to ⟨Zima77las⟩",
    "haslo do serwera testowego brzmi ⟨Zima78las⟩",
    "lösenordet till servern är nu ⟨Vinter44is⟩",
    "losenordet till databasen ar ⟨Vinter45is⟩",
    "пароль от тестового сервера теперь ⟨Kot55les⟩",
    "новый пароль для базы — ⟨Kot56les⟩",
    "数据库的密码现在已经改成了 ⟨Xk29dkq⟩",
    "测试服务器的登录密码应该是 ⟨Xk30dkq⟩，别忘了",
    "密码我改成⟨Xk31dkq⟩了",
    "后台的令牌是 ⟨k2LL90zzQ1⟩",
    "门禁密码：⟨480213⟩",
    "パスワードの方はたぶん ⟨Xk29dkq⟩ です",
    "検証環境の管理者パスワードは今 ⟨Xk32dkq⟩ になっています",
    "パスワードは「⟨青い空と海⟩」です",
    "暗証番号は⟨4821⟩です",
    "APIキーは ⟨k2LL90zzQ2⟩ です",
    "관리자 비밀번호는 지금 ⟨Xk33dkq⟩ 입니다",
    "테스트 서버 비밀번호가 ⟨Xk34dkq⟩예요",
    "wifi şifresi şu an ⟨Kis77kar⟩",
]
"""Each with the password between brackets."""
ABOUT = [
    "the password is stored in vault",
    "the password policy is 12 characters with 2 digits",
    "the password hash is computed with argon2id",
    "the password file is secrets.yaml",
    "the token limit is 128k",
    "the token count was 45210 before compaction",
    "the key for this entry is user_42",
    "the password reset link is valid for 24h",
    "the password for staging is in 1Password",
    "password hashing: bcrypt with cost 12",
    "I forgot my password, the build is v2.3.1a",
    "the password field is called password1",
    "the PIN header is on GPIO 1734",
    "the password manager we use is KeePassXC 2.7",
    "the secret is rotated every 90d by cron2",
    "the API key is read from config2.yaml",
    "das Passwort ist falsch",
    "das Passwort wird mit SHA-256 gehasht",
    "das Passwort für staging liegt in 1Password",
    "Das Passwort muss mindestens 12-stellig sein",
    "mot de passe oublié",
    "le mot de passe est chiffré avec AES-256",
    "le mot de passe du serveur est dans le fichier config2.yml",
    "la contraseña es obligatoria",
    "la contraseña se guarda con bcrypt2",
    "la clave primaria es user_id2",
    "la clave es usar TypeScript 5.4",
    "la clave del problema es que Python3.12 no lo soporta",
    "密码错误",
    "密码是用bcrypt2加密的",
    "密码长度是8到16位",
    "密码在config2.yaml里",
    "パスワードは8文字以上です",
    "パスワードはSHA-256でハッシュ化されます",
    "パスワードは1Passwordに保存されています",
    "비밀번호는 8자 이상이어야 합니다",
    "пароль хранится в vault2prod",
    "a senha está errada",
    "la password è obbligatoria",
    "het wachtwoord is verlopen",
    "Passwords are hashed with PBKDF2-HMAC-SHA256",
    "passwords are at least 8-character strings",
    "The token is a JWT signed with RS256",
    "the access token is validated by AuthService2",
    "the secret name is db-credentials-v2",
    "The password prompt is shown 3x",
    "the credential helper is git-credential-osxkeychain2",
    "the password is generated by openssl rand -base64 32",
    "The password we set in CI is $DB_PASSWORD",
    "the token is in the header X-Auth2",
    'The secret key is loaded from os.environ["KEY2"]',
    "el token es un JWT de 256 bits",
    "le jeton est un UUIDv4",
    "the password test was added in test_login2.py",
    "the password form was changed in v2.3.1a",
    "reset your password by going to settings2",
    "the password check was moved to auth_v2.py",
    "we changed the password hashing from md5 to argon2id",
    "set the password in .env.prod2",
    "パスワードをbcrypt2でハッシュ化",
    "비밀번호를 8자 이상으로",
    "the api key: OPENAI_API_KEY",
    "the signing key: RS256",
    "recovery key: see runbook-12",
]


def test_what_is_said_to_be_a_secret_is_redacted_and_nothing_around_it() -> None:
    wrong = []
    for sentence in TOLD:
        before, _, after = GIVEN.split(sentence)
        redacted = REDACTOR.redact(GIVEN.sub(r"\1", sentence))
        if not re.fullmatch(re.escape(before) + r"\[redacted:[a-z-]+:\w{6}\]" + re.escape(after), redacted):
            wrong.append((sentence, redacted))
    assert wrong == []


def test_a_sentence_about_a_secret_stays() -> None:
    assert [sentence for sentence in ABOUT if REDACTOR.redact(sentence) != sentence] == []


def test_many_words_for_secrets_take_no_longer_than_their_length() -> None:
    for piece in ("password is ", "my password for ", "token is ", "mot de passe, c'est, ", "密码是", "password (a, "):
        grows_evenly(lambda size, piece=piece: REDACTOR.redact(piece * (size // len(piece))), 5_000)  # type: ignore[misc]
